"""Training loss of a teacher whose quadratic part is no small part of its linear part, eq. (47) to (49).

Shapes: Z nodes μ, U nodes of units, K = len(DEGREE) harmonics of a row.
"""

from __future__ import annotations

import numpy as np

from .degree_one import Pencil, directions
from .nodes import Features, Solution
from .plane import DEGREE


def kernel(f: Features, now: Solution, at: Pencil):
    """The kernel of eq. (47) on the harmonics and the nodes; (KZ, KZ)."""
    root, Z, share = np.sqrt(at.g), f.z.size, f.p.N * f.units.chance * now.q
    m = f.m * root
    out = np.eye(len(DEGREE) * Z).reshape(len(DEGREE), Z, len(DEGREE), Z).astype(at.g.dtype)
    for j, k in enumerate(DEGREE):
        for i in range(j, len(DEGREE)):
            block = (m[k].T * (share * f.units.harmonics[j, i])) @ m[DEGREE[i]]
            out[j, :, i] += block
            if i > j:
                out[i, :, j] += block.T
    onto = [(f.z / f.chi)[:, None], 1.0]  # β̂'s direction enters degree 0, ζ's degree 1
    X = further(f, now, at)
    for a in range(2):
        for b in range(2):
            out[a, :, b] -= onto[a] * X[a][b] * np.transpose(onto[b])
    return out.reshape(len(DEGREE) * Z, -1)


def further(f: Features, now: Solution, at: Pencil):
    """X of eq. (48), what directions beyond the four take from the kernel between β̂ and ζ; [2][2] of (Z, Z)."""
    forms, one, m = directions(f, at), np.eye(f.z.size), f.m[1] * np.sqrt(at.g)
    share = f.p.N / f.dimensions[1] * f.units.chance * now.q
    K = [[(m.T * (share * f.units.plane[a, b])) @ m + (a == b) * one for b in range(4)] for a in range(4)]
    R_inverse, V = np.linalg.inv(forms.R[0][0] / f.batch.away**2), forms.V[0] / f.batch.away
    X_01 = K[0][1] - V @ R_inverse
    X = [[K[0][0] - forms.inverse - V @ R_inverse @ V.T, X_01], [X_01.T, K[1][1] - R_inverse]]
    K_oo_inverse = np.linalg.inv(np.block([row[2:] for row in K[2:]]))
    K_po = [np.hstack(row[2:]) for row in K[:2]]
    return [[X[a][b] - K_po[a] @ K_oo_inverse @ K_po[b].T for b in range(2)] for a in range(2)]


def training_loss(f: Features, now: Solution, at: Pencil):
    """L_tr, eq. (49)."""
    b = np.zeros(len(DEGREE) * f.z.size, np.result_type(f.label, at.g))
    b[: f.label.size] = (f.label * np.sqrt(at.g)).ravel()
    return at.g @ f.unseen + b @ np.linalg.solve(kernel(f, now, at), b)
