"""Laws of the bulk of singular values: where it ends, its density, and where its largest value lies at finite size.

A bulk of squared singular values x is reached from outside through w = -1/m, m the Stieltjes transform, the mean of
1/(λ - x) over the bulk's eigenvalues λ, zeros included: x(w) is convex, the bulk ends at its minimum, w = `turn`, and
inside the bulk w is complex. Beside the end the largest of `count` values fluctuates by
σ = (count √(2/x'')/w²)^{-2/3}, and follows the law of Tracy & Widom (1996) for real matrices, whose mean lies 1.21 σ
inside the bulk.

Rows of one covariance up to scale have x(w) in closed form (Marchenko & Pastur 1967, Silverstein & Choi 1995; `Law`).
Rows whose covariances differ and do not commute, as those of W after a large step, have it from a fixed point
(`SampledRows`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from scipy.optimize import brentq

from .random_features import IMAGINARY

_TRACY_WIDOM = -1.2065335745820  # mean of the law for real symmetric matrices
_CLOSE = 1e-7  # the relative step in w at which the search for the bulk's end gives up
_NEWTON = 40


class Bulk:
    """What follows from x(w): `at` gives (x, x'), `turn` the w at which the bulk ends, `bend` x'' there."""

    @property
    def edge(self):
        """Largest singular value of the bulk as its size grows."""
        return sqrt(self.at(self.turn)[0])

    @property
    def largest(self):
        """Mean of the largest singular value of a bulk of `count` values: inside the edge by O(count^{-2/3})."""
        w = self.turn
        scale = (float(self.count) * sqrt(2 / self.bend(w)) / w**2) ** (-2 / 3)
        return sqrt(self.at(w)[0] + _TRACY_WIDOM * scale)


@dataclass(frozen=True)
class Law(Bulk):
    """Law of squared singular values x = w (1 + δ(w)) of rows with independent entries in their covariance's axes.

    delta : w (real beyond `top`, or complex) -> (δ(w), δ'(w)).  top : largest eigenvalue t of a row's covariance.
    count : length of the side on which the mean is taken, n for F and d for W.
    share : share of the eigenvalues on that side that are not zero.
    """

    delta: Callable
    top: float
    count: int
    share: float

    def at(self, w):
        """(x, x'(w)) at w, real beyond the end of the atoms or complex; a number or an array."""
        delta, slope = self.delta(w)
        return w * (1 + delta), 1 + delta + w * slope

    def bend(self, w):
        """x''(w) at a real w."""
        return self.at(w + 1j * IMAGINARY * w)[1].imag / (IMAGINARY * w)

    @property
    def turn(self):
        """The w at which the bulk ends."""
        low, high = self.top * (1 + 1e-12), 2 * self.top
        while self.at(high)[1] <= 0:
            high *= 2
        return brentq(lambda w: self.at(w)[1], low, high, xtol=1e-14 * self.top, rtol=1e-14)

    def beyond(self, height):
        """The w of a singular value at height >= 1 times the edge."""
        turn = self.turn
        x = height**2 * self.at(turn)[0]
        return turn if height == 1 else brentq(lambda w: self.at(w)[0] - x, turn, x, rtol=1e-12)

    def density(self, s):
        """Density of the bulk's non-zero singular values at s > 0; the same shape as s.

        Newton's iteration for x(w) = s² + iε, continued from a large ε, where w is known, to a negligible one.

        s : float or array, Singular values.  Raises ArithmeticError If it does not converge.
        """
        s = np.asarray(s, float)
        x, scale = s**2, self.edge**2
        w = x + 1j * 30 * scale
        for epsilon in scale * np.geomspace(30, 1e-7, 120):
            for _ in range(4):
                value, slope = self.at(w)
                w = w - (value - x - 1j * epsilon) / slope
        if np.abs(self.at(w)[0] - x - 1j * epsilon).max() > 1e-8 * scale or w.imag.min() < 0:
            raise ArithmeticError("density: Newton's iteration did not converge")
        return 2 * s * (-1 / w).imag / np.pi / self.share


@dataclass(frozen=True)
class SampledRows(Bulk):
    """Law of WᵀW, W of N rows ω_i ~ N(0, Σ_i/d), Σ_i = mix_i · (1, M, M², C), with M and C of one sample (X, y):
    M = Xᵀdiag(y)X/n, C = Xᵀdiag(y²)X/n.

    mix : (4, N).  y : (n,).  phi : d/n.  count : d.

    R = (WᵀW - x)⁻¹ is equivalent to [A_0 - x + A_1 M + A_2 M² + A_3 C]⁻¹ with A = (1/d) Σ_i q_i mix_i and
    1/q_i = 1 + mix_i · tr(R, MR, M²R, CR)/d. It is the upper left entry of the inverse of the 2 × 2 pencil
    diag(A_0 - x, -1/A_2) + (1/n) Σ_μ x_μx_μᵀ ⊗ Y(y_μ), Y(y) = [[A_1 y + A_3 y², y], [y, 0]], whose equivalent G in turn
    has the inverse diag(A_0 - x, -1/A_2) + S_0, S_k = E y^k (1 + φYG)⁻¹Y. With G_11 = -1/w given, four unknowns are
    left: G_12, G_22, A_1, A_3.
    """

    mix: np.ndarray
    y: np.ndarray
    phi: float
    count: int

    def at(self, w):
        """(x, x'(w)) at a real w close to `turn`.  Raises ArithmeticError where the fixed point is not found."""
        return self._solve(w, self._end[1])[1:]

    def bend(self, w):
        """x''(w) at a real w."""
        h = 1e-4 * w
        return (self.at(w + h)[1] - self.at(w - h)[1]) / (2 * h)

    @property
    def turn(self):
        """The w at which the bulk ends."""
        return self._end[0]

    @cached_property
    def _end(self):
        """`turn` and the state there, approached from above by steps that shorten where the branch would be left."""
        reach = np.abs(self.y).max() * (1 + sqrt(self.phi)) ** 2  # above the norm of M; that of C is below reach·max|y|
        w = 4 * (np.array([1, reach, reach**2, reach * np.abs(self.y).max()]) @ self.mix).max()
        state, ratio = np.array([0.0, 0.0, *self.mix[[1, 3]].sum(1) / self.count]), 0.7
        state = self._solve(w, state)[0]
        while True:
            try:
                found, _, slope = self._solve(w * ratio, state)
            except ArithmeticError:
                ratio = sqrt(ratio)
                if ratio > 1 - _CLOSE:
                    raise
                continue
            if slope <= 0:
                break
            w, state = w * ratio, found
        turn = brentq(lambda v: self._solve(v, state)[2], w * ratio, w, rtol=1e-12)
        return turn, self._solve(turn, state)[0]

    def _solve(self, w, state):
        """State, x and x' at w, by Newton's iteration from `state`; only the branch that comes from w = ∞ counts."""
        for _ in range(_NEWTON):
            tilted = np.append(state, -1 / w)[:, None] + 1j * IMAGINARY * np.eye(5)
            at = [self._map(column) for column in tilted.T]
            x, off, inside = at[0][0].real, at[0][1].real, at[0][2]
            slopes = np.array([np.append(off_j.imag, x_j.imag) for x_j, off_j, _ in at]).T / IMAGINARY
            move = np.linalg.solve(slopes[:4, :4], -off)
            state = state + move
            if np.all(np.abs(move) <= 1e-11 * (1e-2 + np.abs(state))):
                break
        else:
            inside = False
        if not inside:
            raise ArithmeticError(f"SampledRows: no fixed point found at w = {w:g}")
        follow = np.linalg.solve(slopes[:4, :4], -slopes[:4, 4]) / w**2
        return state, x, slopes[4, :4] @ follow + slopes[4, 4] / w**2

    def _map(self, state):
        """x, by how much the four equations are missed, and whether all q and determinants are positive."""
        g12, g22, a1, a3, g11 = state
        y, phi = self.y, self.phi
        corner, cross = a1 * y - (phi * g22 - a3) * y**2, 1 + phi * g12 * y
        determinant = cross**2 + phi * g11 * corner
        Y_tilde = np.array([corner, y * cross, -phi * g11 * y**2]) / determinant  # entries 11, 12, 22 of (1 + φYG)⁻¹Y
        S, S1, S2 = ((Y_tilde @ y**k / y.size)[[[0, 1], [1, 2]]] for k in range(3))
        G = np.array([[g11, g12], [g12, g22]])
        traces = np.array(  # of R, MR, M²R and CR, over d
            [
                g11,
                -phi * (G @ S1 @ G)[0, 0],
                (S @ G @ S - S)[1, 1],
                np.mean(y**2) * g11 - phi * (G @ S2 @ G)[0, 0],
            ]
        )
        q = 1 / (1 + traces @ self.mix)
        A = self.mix @ q / self.count
        lower = A[2] / (1 - A[2] * S[1, 1])
        ratio = S[0, 1] * lower
        off = np.array([ratio * g11 - g12, ratio**2 * g11 - lower - g22, A[1] - a1, A[3] - a3])
        inside = bool(np.all(q.real > 0) and np.all(determinant.real > 0))
        return A[0] + S[0, 0] - (1 - S[0, 1] * g12) / g11, off, inside
