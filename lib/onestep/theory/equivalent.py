"""The equivalent features after a step of any size, at the n and d at hand, and the ridge problem on them.

Hidden unit i sees ω_iᵀx with ω_i its row after the step. Two numbers of the input, z = β̂ᵀx and χ = ‖x - zβ̂‖/√d', two
of the unit, its coefficient s on β̂ and the length r of the rest (`units`), fix all but the angle between the rests
of ω_i and of x. That angle's cosine is g/√d', g a coordinate of a uniform direction in d' = d - 1 dimensions, so the
unit acts as

    σ(s z + r χ g) = Σ_k m_k(s, r; z, χ) P_k(g) + noise,      k = 0, 1, 2, 3,

P_k the zonal harmonics (`quadrature.zonal`). Distinct degrees do not mix; P_k of random directions is the kernel of D_k
independent features. Ridge regression on them is a deterministic problem in which a sample at a node μ = (z, χ) counts
g_μ = p_μ/(1 + κ_μ) and a unit has susceptibility q:

    T_k = [1 + (N/D_k) √g⟨q m_k m_kᵀ⟩√g]⁻¹                    share of a signal of degree k that is left,
    κ_μ = (1/n) Σ_k D_k (1 - T_k)_μμ/g_μ + (N/n) ⟨q noise⟩_μ,   1/q = λ + noise·g + Σ_k m_kᵀ√g T_k √g m_k.

`update` is this fixed-point map; `training_loss` the value Σ_k t_kᵀ√g T_k √g t_k + Σ g unseen, t_k the teacher's
coefficients. In degree 1 the weights' covariance Σ_u = (I + tM)² + vC, which depends on the readout weight, takes the
place of the identity (`Pencil`), and the directions that the first batch knows are kept apart (`Directions`): β̂, the
teacher's and W0ᵀa. Of the differences between units' s only what other directions do not show can be used (`once`).

As d → ∞ degrees 2 and 3 join the noise, and the nodes of χ, s and r become the terms √(2/d)·‖x‖² and 1/√d of a formula
with E σ(uz + rg)H_k(g)/√k! in the place of m_k. Both take complex states: that is how derivatives are taken.

Shapes: Z nodes μ, U nodes of units, R modes of m_1, m = 2R, Y nodes of the first batch's residuals, A directions known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from ..problem import Problem
from . import quadrature
from .first_batch import FirstBatch
from .units import Units, units

# Of σ's root mean square: directions of m_k kept, the others being noise. N weighs the square of those of degree 0.
_SMALLEST = (1e-6, 1e-4, 1e-4, 1e-4)
_APART = [0, 2, 3]  # degrees of which the first batch knows no direction


@dataclass(frozen=True)
class Modes:
    """The leading modes of one m_k, or of several: m_k(u, μ) = Σ_r c[u, r] rows[μ, r].

    c : (…, U, R).  rows : (…, Z, R), orthonormal under p_μ.
    """

    c: np.ndarray
    rows: np.ndarray

    @cached_property
    def units(self):
        """c_r c_s, (…, U, R²): Σ_u w_u c_uc_uᵀ and c_uᵀ F c_u become products with a matrix."""
        return _products(self.c)

    @cached_property
    def nodes(self):
        """rows_r rows_s, (…, Z, R²)."""
        return _products(self.rows)


def _products(x):
    return (x[..., :, None] * x[..., None, :]).reshape(*x.shape[:-1], -1)


def modes(m, pz, pu, smallest):
    """`Modes` of m (U, Z) under the weights pz (Z,) and pu (U,) whose root mean square is at least `smallest`."""
    _, size, right = np.linalg.svd((m * np.sqrt(pz)).T * np.sqrt(pu), full_matrices=False)
    keep = size > smallest
    c = (right[keep].T * size[keep]) / np.sqrt(pu)[:, None]
    rows = m.T @ (right[keep].T * np.sqrt(pu)[:, None] / size[keep])
    return Modes(c, rows)


@dataclass(frozen=True)
class Features:
    """The equivalent features of one problem at one step size.

    z, chi, pz : (Z,) nodes μ of the inputs and their weights.  m : (4, U, Z) m_0 … m_3.  noise : (U, Z), rest of E σ².
    label : (4, Z) of the teacher along ζ, given μ.  unseen : (Z,) rest of E σ⋆², plus σ_ε².  modes : of m_0 … m_3.
    """

    p: Problem
    batch: FirstBatch
    units: Units
    z: np.ndarray
    chi: np.ndarray
    pz: np.ndarray
    m: np.ndarray
    noise: np.ndarray
    label: np.ndarray
    unseen: np.ndarray
    modes: tuple

    @cached_property
    def apart(self):
        """The `Modes` of degrees `_APART` in one, with modes that are 0 up to one number R; its arrays (3, …)."""
        parts = [self.modes[k] for k in _APART]
        most = max(part.c.shape[1] for part in parts)
        c, rows = (np.zeros((len(parts), size, most)) for size in (self.units.chance.size, self.z.size))
        for k, part in enumerate(parts):
            R = part.c.shape[1]
            c[k, :, :R], rows[k, :, :R] = part.c, part.rows
        return Modes(c, rows)

    @cached_property
    def left(self):
        """(Z, R), the orthonormal modes of √p_μ m_1."""
        return np.sqrt(self.pz)[:, None] * self.modes[1].rows

    @cached_property
    def dimensions(self):
        """D_0 … D_3 of the inputs orthogonal to β̂."""
        return quadrature.dimensions(float(self.p.d - 1))

    @cached_property
    def scale(self):
        """Factors on a packed state: the roots of the nodes' weights on log κ and log q, 1 on S."""
        self_energy = np.ones(4 * self.modes[1].c.shape[1] ** 2)
        return np.concatenate([np.sqrt(self.pz), np.sqrt(self.units.chance), self_energy])

    def start(self, solution=None):
        """A packed state to iterate from; `solution`, at another step size, is carried over if it fits."""
        if solution is None or solution.kappa.size != self.z.size or solution.q.size != self.units.chance.size:
            return np.zeros(self.scale.size)
        carry = np.kron(np.eye(2), self.left.T @ solution.left)
        self_energy = (carry @ solution.S @ carry.T).ravel()
        return self.scale * np.concatenate([np.log(solution.kappa), np.log(solution.q), self_energy])

    def solution(self, state):
        """The `Solution` that a packed state stands for."""
        Z, U = self.z.size, self.units.chance.size
        x = state / self.scale
        S = x[Z + U :].reshape(2 * (2 * self.modes[1].c.shape[1],))
        return Solution(np.exp(x[:Z]), np.exp(x[Z : Z + U]), S, self.left)


@dataclass(frozen=True)
class Solution:
    """kappa : (Z,) leverages.  q : (U,) susceptibilities.  S : (m, m) self-energy in the modes left (Z, R)."""

    kappa: np.ndarray
    q: np.ndarray
    S: np.ndarray
    left: np.ndarray


def features(p: Problem, eta, batch, values, step_noise, order):
    """`Features` after a step eta on a `FirstBatch`; values, step_noise : as for `units`.  order : nodes of z."""
    strip = 1 / sqrt(1 + (eta * p.student.linear) ** 2 * batch.D / p.N / 4)
    hidden = units(p, eta, batch, values, step_noise, order, strip)
    z, pz = quadrature.graded(order, strip)
    chi, pc = quadrature.length(p.d - 1)
    z, chi, pz = np.repeat(z, chi.size), np.tile(chi, z.size), np.outer(pz, pc).ravel()
    m, noise = quadrature.expand(p.student, hidden.spike[:, None] * z, hidden.length[:, None] * chi, p.d - 1)
    label, unseen = quadrature.expand(p.target, batch.cosine[0] * z, batch.away * chi, p.d - 1)
    size = sqrt(p.student.second_moment)
    parts = tuple(modes(part, pz, hidden.chance, least * size) for part, least in zip(m, _SMALLEST, strict=True))
    noise = noise + sum((part - kept.c @ kept.rows.T) ** 2 for part, kept in zip(m, parts, strict=True))
    return Features(p, batch, hidden, z, chi, pz, m, noise, label, unseen + p.noise**2, parts)


def fluctuation(f: Features, now: Solution):
    """What the theory leaves out, as two numbers of order 1/n: relative variances of 1/q and of κ.

    Both are sums over samples or units, for which the theory has their means. They vary with the tails of single
    entries σ(ω_iᵀx_μ), beyond what is linear at their nodes (relative to 1/q, and to 1 + κ), and with the draw of the
    terms: that part is one over the number of units, or samples, that carry the sum.
    """
    n, N, chance = f.p.n, f.p.N, f.units.chance
    heavy = quadrature.tail(f.p.student, f.units.spike[:, None] * f.z, f.units.length[:, None] * f.chi, f.p.d - 1)
    entries = (chance * now.q**2) @ heavy @ (f.pz / (1 + now.kappa) ** 2) / n
    over_units = chance @ now.q**-2 / (chance @ (1 / now.q)) ** 2 / N
    over_samples = f.pz @ now.kappa**2 / (f.pz @ now.kappa) ** 2 / n
    return entries + over_units, N / n * entries + over_samples


@dataclass(frozen=True)
class Pencil:
    """The linear part of the ridge problem in the span of m_1's modes, with M and C eliminated.

    Its resolvent is [Γ⁻¹ + A_0 + M A_1 + M² A_2 + C A_3]⁻¹, the upper block of the inverse of the pencil
    L = Q_0 + (1/n) Σ_μ x_μx_μᵀ ⊗ Y(y_μ), μ the first batch's samples here, with Q_0 = diag(Γ⁻¹ + A_0, -A_2⁻¹) and
    Y(y) = y [[A_1, 1], [1, 0]] + y² [[A_3, 0], [0, 0]]. Its deterministic equivalent is G = (Q_0 + S)⁻¹, S = E Ỹ(y),
    Ỹ = (1 + φYG)⁻¹Y.

    g : (Z,) weights of the samples.  gamma_inv : (R, R) Γ⁻¹, Γ = rowsᵀ g rows.  bare : (m, m) Q_0⁻¹.  G : (m, m).
    lower : (m, m), (Q_0 + S)⁻¹-weighted self-energy, from which M²T is read.  dressed : (Y, m, m), Ỹ at the nodes.
    means : (3, m, m), E y^k Ỹ for k = 0, 1, 2.
    """

    g: np.ndarray
    gamma_inv: np.ndarray
    bare: np.ndarray
    G: np.ndarray
    lower: np.ndarray
    dressed: np.ndarray
    means: np.ndarray


def pencil(f: Features, now: Solution, omega):
    """`Pencil` at κ, q, S when the samples at node z carry weight omega (Z,) or 1.0."""
    R = f.modes[1].c.shape[1]
    g = f.pz * omega / (1 + omega * now.kappa)
    gamma_inv = np.linalg.inv((g @ f.modes[1].nodes).reshape(R, R))
    A = strengths(f, now)
    bare = np.zeros((2 * R, 2 * R), gamma_inv.dtype)
    bare[:R, :R], bare[R:, R:] = np.linalg.inv(gamma_inv + A[0]), -A[2]
    y, one = f.batch.y[:, None, None], np.eye(2 * R)
    Y = np.zeros((y.size, 2 * R, 2 * R), A.dtype)
    Y[:, :R, :R], Y[:, :R, R:], Y[:, R:, :R] = y * A[1] + y**2 * A[3], y * one[:R, :R], y * one[:R, :R]
    shift = np.linalg.inv(one + now.S @ bare)
    G = bare @ shift
    dressed = np.linalg.solve(one + f.batch.phi * Y @ G, Y)
    means = (f.batch.powers @ dressed.reshape(y.size, -1)).reshape(3, *G.shape)
    return Pencil(g, gamma_inv, bare, G, shift @ now.S, dressed, means)


def strengths(f: Features, now: Solution):
    """A_0 … A_3 of `Pencil`, (4, R, R): how strongly the units show 1, M, M², C in the modes of m_1."""
    R = f.modes[1].c.shape[1]
    return (f.p.N / f.dimensions[1]) * ((f.units.mix * (f.units.chance * now.q)) @ f.modes[1].units).reshape(4, R, R)


def linear_traces(f: Features, at: Pencil):
    """(4, R, R), the traces over inputs of T, MT, M²T, CT over d, T the resolvent of the pencil.

    Of the samples' terms, (1/n)Σ y^k x xᵀT = E y^k [1 - φGỸ]G: a sample's own share of T is taken out of it.
    """
    batch, R, G = f.batch, f.modes[1].c.shape[1], at.G
    first, second = (batch.moment(k) * G - batch.phi * G @ at.means[k] @ G for k in (1, 2))
    return np.array([G[:R, :R], first[:R, :R], -at.lower[R:, R:], second[:R, :R]])


def update(f: Features, state, omega):
    """One pass of the fixed-point map, packed (κ, q, S) from old; samples at μ carry weight omega (Z,) or 1.0."""
    p, now = f.p, f.solution(state)
    at = pencil(f, now, omega)
    trace = linear_traces(f, at)
    linear = at.gamma_inv - at.gamma_inv @ trace[0] @ at.gamma_inv  # (1 - T_1)/g in the modes
    kept, used = resolved(f, now, at.g)
    left = f.noise @ at.g + np.sum(f.units.mix * (trace.reshape(4, -1) @ f.modes[1].units.T), axis=0)
    left = left + np.sum(f.apart.units @ kept.reshape(len(kept), -1, 1), axis=0)[:, 0]
    load = p.N * (f.units.chance * now.q) @ f.noise + f.dimensions[1] * (f.modes[1].nodes @ linear.ravel())
    load = load + f.dimensions[_APART] @ (f.apart.nodes @ used.reshape(len(used), -1, 1))[..., 0]
    return f.scale * np.concatenate([np.log(load / p.n), -np.log(p.ridge + left), at.means[0].ravel()])


def resolved(f: Features, now: Solution, g):
    """In the modes of `apart`: √g T_k √g, and (1 - T_k)/g, both (3, R, R)."""
    one = np.eye(f.apart.c.shape[-1])
    scale = (f.p.N / f.dimensions[_APART])[:, None, None]
    A = scale * ((f.units.chance * now.q) @ f.apart.units).reshape(-1, *one.shape)
    gamma = (g @ f.apart.nodes).reshape(-1, *one.shape)
    back = np.linalg.inv(one + gamma @ A)
    return back @ gamma, A @ back


@dataclass(frozen=True)
class Directions:
    """How the linear problem treats the directions e_a (the teacher's; W0ᵀa) next to β̂; all matrices (Z, Z).

    inverse : T_β̂β̂⁻¹.  seen[a][b] : T between e_a and e_b with β̂ projected out.  leak[a] : of e_a into β̂.
    generic : T of a direction that the first batch does not know.
    """

    inverse: np.ndarray
    seen: list
    leak: list
    generic: np.ndarray


def directions(f: Features, at: Pencil):
    """`Directions` of the linear problem `at`."""
    batch, R, Z = f.batch, f.modes[1].c.shape[1], f.z.size
    A, m = batch.mean.size, 2 * R
    between, onto, itself = _resolved_forms(batch, at)
    basis = (f.modes[1].rows * np.sqrt(at.g)[:, None]) @ at.gamma_inv
    gamma = np.linalg.inv(at.gamma_inv)

    def lifted(form, overlap):
        return overlap * np.eye(Z) - basis @ (overlap * gamma - form) @ basis.T

    def block(matrix, a, b=0):
        return matrix[a * m : a * m + R, b * m : b * m + R]

    inverse = np.linalg.inv(lifted(itself[:R, :R], 1.0))
    cross = [lifted(block(onto, a), batch.cosine[a]) for a in range(A)]
    pairs = [[lifted(block(between, a, b), float(a == b)) for b in range(A)] for a in range(A)]
    seen = [[pairs[a][b] - cross[a] @ inverse @ cross[b].T for b in range(A)] for a in range(A)]
    leak = [batch.cosine[a] * np.eye(Z) - inverse @ cross[a].T for a in range(A)]
    return Directions(inverse, seen, leak, lifted(at.G[:R, :R], 1.0))


def _resolved_forms(batch, at):
    """Forms e_aᵀL⁻¹e_b (Am, Am), e_aᵀL⁻¹β̂ (Am, m) and β̂ᵀL⁻¹β̂ (m, m) of the pencil's inverse."""
    A, m = batch.mean.size, len(at.G)
    wide = np.kron(np.eye(A), at.bare)
    both = np.tensordot(batch.pair, at.dressed, 1).transpose(0, 2, 1, 3).reshape(A * m, A * m)
    between = wide @ np.linalg.inv(np.eye(A * m) + both @ wide)
    pull = np.tensordot(batch.along * batch.y, at.dressed, 1)
    toward = np.concatenate([c * np.eye(m) - batch.phi * w @ at.G for c, w in zip(batch.mean, pull, strict=True)])
    square = np.tensordot(batch.one * batch.y**2, at.dressed, 1)
    onto = between @ toward / sqrt(batch.D)
    itself = toward.T @ onto / sqrt(batch.D)
    itself = itself + batch.rest / batch.D * (at.G - batch.phi / batch.moment(2) * at.G @ square @ at.G)
    return between, onto, itself


def once(f: Features, at: Pencil, share, shown):
    """(Z, Z), the part of `shown` that is left when it counts once what m_1 has of β̂ᵀω_i.

    A direction orthogonal to β̂ shows β̂ᵀω_i by m_1 (Σ_u)_β̂j/(Σ_u)_β̂β̂ β̂ᵀω_i. As m_1 itself varies with β̂ᵀω_i these
    features vary beyond what m_1m_1ᵀ averaged makes of them, along one direction, Σ_uβ̂: that variance comes in by
    Woodbury's formula. share : (U,) weight of a unit.
    """
    c, rows = f.modes[1].c, f.modes[1].rows * np.sqrt(at.g)[:, None]
    weight = f.p.N / f.dimensions[1] * share * f.units.along
    each = f.units.alike(weight)
    mean = np.einsum("ea,ear->ar", each, f.units.alike(c)) / each.sum(0)[:, None]
    whole = np.linalg.inv((c.T * weight) @ c)
    basis, one = rows @ at.gamma_inv, np.eye(len(whole))
    beyond = whole @ (one - (mean.T * each.sum(0)) @ mean @ whole)
    return rows @ np.linalg.solve(one + basis.T @ shown @ basis @ beyond, basis.T)


def training_loss(f: Features, state, omega):
    """L_tr when the samples at μ carry weight omega (Z,) or 1.0.

    Labels of degree >= 2 in ζ cost what T_k leaves. The rest is one linear problem on the Z nodes: `top` is β̂'s own
    direction beside the constant, `spikes` (Z, U) the units' even parts there, `corner` (U, U) what units share outside
    of it, `along` (U,) what they share with the label there; both only through W0ᵀa, with the full initial output.
    """
    now = f.solution(state)
    at = pencil(f, now, omega)
    known, root, one = directions(f, at), np.sqrt(at.g), np.eye(f.z.size)
    share = f.units.chance * now.q
    strength = np.sqrt(f.p.N * share)
    m, label = f.m * root, f.label * root
    linear = label[1] / f.batch.away  # the label along e_0
    loss = at.g @ f.unseen + linear @ known.seen[0][0] @ linear
    for k, used in zip(_APART, resolved(f, now, at.g)[1], strict=True):
        if k:
            rows = f.apart.rows[_APART.index(k)] * root[:, None]
            loss = loss + label[k] @ (label[k] - rows @ (used @ (rows.T @ label[k])))

    z = (f.z / f.chi)[:, None]
    random = one + f.p.N / f.dimensions[1] * (m[1].T * (share * f.units.along)) @ m[1]  # is in the nodes of s already
    shown = random - known.inverse  # of it, in other directions
    less = z * once(f, at, share, shown)
    top = one - less @ shown * z.T
    spikes, corner, along = m[0].T * strength, np.eye(share.size), np.zeros(share.size)
    mean = label[0] - less @ known.leak[0] @ linear
    if len(known.seen) == 2:
        overlap = m[1].T * (strength * f.units.overlap)  # along W0ᵀa
        spikes = spikes - less @ known.leak[1] @ overlap
        corner = corner + overlap.T @ (known.seen[1][1] - known.generic) @ overlap  # q knows of `generic` already
        along = -overlap.T @ known.seen[1][0] @ linear
    target = np.concatenate([mean, along])
    return loss + target @ np.linalg.solve(np.block([[top, spikes], [spikes.T, -corner]]), target)
