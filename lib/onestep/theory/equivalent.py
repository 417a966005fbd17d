"""The equivalent Gaussian features after a step of any size, and the ridge problem on them.

After the step, hidden unit i sees u_i z + ω_iᵀx: z = β̂ᵀx is the input along the gradient's direction,
u_i = η c_1 a_i ‖β‖ the unit's spike, ω_i all the rest of its weights. Given z the rest is Gaussian, so with
r² = ‖ω_i‖² and g ~ N(0, 1) the unit acts as

    μ0(u_i, z) + μ1(u_i, z) ω_iᵀx/r + μ2(u_i, z) ξ_i,
    μ0 = E σ(uz + rg),  μ1 = E gσ(uz + rg),  μ2² = E σ²(uz + rg) - μ0² - μ1².

The step moves ω_i too. Of σ'(Xw_i) the constant c_1 makes the spike; the part linear in w_i and the rest make

    ω_i = (I + t_i M) w_i + √(v_i/d) C^{1/2} g_i,      M = Xᵀdiag(y)X/n,  C = Xᵀdiag(y²)X/n,
    t_i = 2 c_2 η a_i,   v_i = η² a_i² φ (E σ'² - c_1² - 4c_2²),

so the weights have covariance Σ_u/d, Σ_u = (I + tM)² + vC. And the length of x, ‖x‖² = d(1 + ξ) with ξ of variance
2/d, moves all units at once, by ξ r²∂μ0/∂r²: a readout along it pays for that noise. (Σ_u enters there by its trace
only.) Ridge regression on such features is a deterministic problem in which a sample at z counts g_z = p_z/(1 + κ_z)
and a unit with spike u has susceptibility q(u): `update` is its fixed-point map, `training_loss` its value. Both take
complex states: that is how derivatives are taken.

Shapes: Z nodes of z, U nodes of u, R modes of μ1, Y nodes of the first batch's residuals y, A directions that y
depends on, m = 2R.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import sqrt

import numpy as np
from numpy.polynomial import hermite_e

from ..problem import Problem

TERMS = {"square": True, "cubic": True, "cross": True, "coherent": True}
STEP_NOISE = ("correlated", "isotropic", "absent")
_RANK = 1e-7  # relative size of the directions of μ1 kept: the losses feel the square of what is dropped


@dataclass(frozen=True)
class FirstBatch:
    """The law of the residuals y that the gradient step sees, with the inputs along the directions e_a they depend on.

    phi : d over the size of the first batch.   y : (Y,) quadrature nodes.
    one : (Y,) weights of E f(y);  along : (A, Y) of E s_a f(y);  pair : (A, A, Y) of E s_a s_b f(y), with s_a = e_aᵀx.
    """

    phi: float
    y: np.ndarray
    one: np.ndarray
    along: np.ndarray
    pair: np.ndarray

    def moment(self, k):
        """E y^k."""
        return float(self.one @ self.y**k)

    @property
    def mean(self):
        """(A,) E s_a y: the part of β in the span of the directions."""
        return self.along @ self.y

    @property
    def D(self):
        """Limit of ‖β‖²."""
        return float(self.mean @ self.mean + self.phi * self.moment(2))

    @property
    def cosine(self):
        """(A,) cosines of β with the directions."""
        return self.mean / sqrt(self.D)


def first_batch(p: Problem, phi, order):
    """A `FirstBatch` on at most order // 2 + 4 Gauss nodes in y, for a first batch of d/phi samples."""
    s, weight = p.target.nodes()
    spread = p.noise**2 + (p.student.second_moment if p.initial_output == "full" else 0.0)
    noise, chance = _gauss_hermite(32) if spread else (np.zeros(1), np.ones(1))
    y = (p.target(s)[:, None] + sqrt(spread) * noise).ravel()
    root = np.sqrt((weight[:, None] * chance).ravel())
    s, noise = np.repeat(s, noise.size), np.tile(noise, s.size)
    along, pair = [s], [[s**2]]
    if p.initial_output == "full":  # f0 is linear in its own direction W0ᵀa, and that part correlates with the noise
        share = -p.student.linear / sqrt(spread)
        along.append(share * noise)
        pair = [[s**2, s * along[1]], [s * along[1], 1 - share**2 + along[1] ** 2]]
    nodes, vectors, basis = _lanczos(y, root, order // 2 + 4)
    weights = vectors[0] * (np.array([*along, *chain(*pair)]) * root @ basis.T @ vectors)
    A = len(along)
    return FirstBatch(phi, nodes, vectors[0] ** 2, weights[:A], weights[A:].reshape(A, A, -1))


def _gauss_hermite(order):
    x, w = hermite_e.hermegauss(order)
    return x, w / w.sum()


def _lanczos(y, root, count):
    """Eigenvalues, eigenvectors and basis of diag(y) in the Krylov space of `root`: a Gauss rule for weights root²."""
    basis, diagonal, off = [root / np.linalg.norm(root)], [], []
    while True:
        v = y * basis[-1]
        diagonal.append(v @ basis[-1])
        for _ in range(2):
            v = v - np.array(basis).T @ (np.array(basis) @ v)
        if len(diagonal) == count or np.linalg.norm(v) < 1e-9 * np.linalg.norm(y * root):
            break
        off.append(np.linalg.norm(v))
        basis.append(v / off[-1])
    nodes, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1))
    return nodes, vectors, np.array(basis)


def trapezoid(order, strip):
    """Trapezoid rule for N(0, 1), cut where its two errors balance for integrands analytic within `strip` of the axis.

    κ(z) and q(u) have poles at such a distance, which Gauss-Hermite quadrature feels more.
    """
    x = np.linspace(-1, 1, order) * np.cbrt(2 * np.pi * strip * order)
    w = np.exp(-(x**2) / 2)
    return x, w / w.sum()


@dataclass(frozen=True)
class Units:
    """Hidden units on nodes of (readout weight, fluctuation of the spike, length).

    chance : weights.  move : eta a.  u : spike, fluctuation included.  rr : r^2 of the part orthogonal to beta-hat.
    mean_rr : its mean over units of one readout weight.   overlap.  mix.
    """

    chance: np.ndarray
    move: np.ndarray
    u: np.ndarray
    mean_u: np.ndarray
    rr: np.ndarray
    mean_rr: np.ndarray
    overlap: np.ndarray
    mix: np.ndarray
    shape: np.ndarray


def units(p: Problem, eta, batch, away, values, step_noise, order, strip):
    a, chance = trapezoid(order, strip) if values is None else (values, np.full(values.size, 1 / values.size))
    a = a / sqrt(p.N)
    f, m2 = p.student, batch.moment(2)
    c = f.coefficients(3)
    c1, c2 = f.linear, c[2]
    u = eta * c1 * sqrt(batch.D) * a
    if p.initial_output == "full":
        u = u - c1 * a / sqrt(batch.D)
    t = 2 * c2 * eta * a
    v = (eta * a) ** 2 * batch.phi * max(0.0, f.slope_second_moment - c1**2 - 4 * c2**2)
    if step_noise == "absent":
        t, v = 0 * t, 0 * v
    rr = 1 + t**2 * batch.phi * m2 + v * m2
    mix = np.array([np.ones_like(t), 2 * t, t**2, v]) / rr
    if step_noise == "isotropic":
        mix = np.array([[1.0], [0.0], [0.0], [0.0]]) + 0 * t
    spread = norm_spread(p, batch, eta * a) if step_noise == "correlated" else _initial_spread(p, rr)
    sh = plane(batch, away, mix)
    sd = np.sqrt(rr * sh[0, 0] / p.d)
    back = (1 + t * plane_M(batch)) / np.sqrt(rr * sh[0, 0])
    kappa = 6 * c[3] / c1 * u / sqrt(p.d) * back * (step_noise == "correlated")
    # nodes: (+-sqrt3, 0) w 1/6, (0, +-sqrt1.5) w 1/3
    base = rr * (1 - sh[0, 0] / p.d)
    e = np.array([-sqrt(3), 0, 0, sqrt(3)])
    h = np.array([0, -sqrt(1.5), sqrt(1.5), 0])
    w = np.array([1, 2, 2, 1]) / 6
    bound = (e**2 - 1)[:, None] * (back**2 / p.d) * (p.first_layer == "sphere")
    rrs = base * (1 + 2 * kappa * e[:, None]) + np.sqrt(2 * spread / p.d) * h[:, None] - bound
    rrs = np.maximum(rrs, 0.05 * rr)
    us = u + sd * e[:, None]
    tile = lambda x: np.tile(x, 4)
    return Units(
        np.outer(w, chance).ravel(), tile(eta * a), us.ravel(), tile(u), rrs.ravel(), tile(rr), tile(a / np.sqrt(rr)),
        np.tile(mix, (1, 4)), np.tile(sh, (1, 1, 4)),
    )


def _plane_forms(b, away):
    A = b.mean.size
    m2 = b.moment(2)
    root = sqrt(b.phi * m2)
    M, C = np.zeros((A + 1, A + 1)), np.zeros((A + 1, A + 1))
    M[:A, :A], C[:A, :A] = b.pair @ b.y, b.pair @ b.y**2
    M[:A, A] = M[A, :A] = b.phi * (b.along @ b.y**2) / root
    C[:A, A] = C[A, :A] = b.phi * (b.along @ b.y**3) / root
    M[A, A], C[A, A] = b.phi * b.moment(3) / m2, m2 + b.phi * b.moment(4) / m2
    hat = np.append(b.cosine, sqrt(b.phi * m2 / b.D))
    zeta = (np.eye(A + 1)[0] - b.cosine[0] * hat) / away
    pl = np.array([hat, zeta])
    return np.array([pl @ X @ pl.T for X in (np.eye(A + 1), M, M @ M + b.phi * C, C)])


def plane(b, away, mix):
    """Sigma_u in the plane of beta-hat and zeta over r^2: (2, 2, U)."""
    return np.einsum("kab,ku->abu", _plane_forms(b, away), mix)


def plane_M(b):
    return _plane_forms(b, 1.0)[1, 0, 0]


def pair_traces(b):
    """(1/d) tr of products of (I, M, M^2, C), (4, 4)."""
    phi, (m2, m3, m4) = b.phi, (b.moment(j) for j in (2, 3, 4))
    return np.array(
        [
            [1, 0, phi * m2, m2],
            [0, phi * m2, phi**2 * m3, phi * m3],
            [phi * m2, phi**2 * m3, phi**3 * m4 + 2 * phi**2 * m2**2, phi**2 * m4 + phi * m2**2],
            [m2, phi * m3, phi**2 * m4 + phi * m2**2, phi * m4 + m2**2],
        ]
    )


def _initial_spread(p, rr):
    """(d/2) Var ‖ω‖² when only the initial lengths vary."""
    return rr**2 if p.first_layer == "gaussian" else np.zeros_like(rr)


def norm_spread(p: Problem, batch, move):
    """(d/2) Var ‖ω_i‖² over w_i for move = η a_i: it makes the units' even parts differ, which the readout can use.

    From ‖ω_i‖² = ‖w_i‖² + 2 move·(1/n)Σ y_μ h(x_μᵀw_i) + move²‖Xᵀ(y∘k(Xw_i))/n‖² with k = σ' - c_1, h(g) = g k(g). The
    fluctuation along β̂ᵀw_i, present when c_3 != 0, only shifts u_i by a relative 1/√d and is left out.
    """
    g, w = p.student.nodes()
    k = p.student.derivative(g) - p.student.linear
    w = w / w.sum()
    h, kk = g * k - w @ (g * k), k**2 - w @ k**2
    phi, (m2, m3, m4) = batch.phi, (batch.moment(j) for j in (2, 3, 4))
    spread = 4 * m2 * (w @ h**2) * move**2 + 4 * phi * m3 * (w @ (h * kk)) * move**3
    spread = spread + (phi**2 * m4 * (w @ kk**2) + 2 * phi * m2**2 * (w @ k**2) ** 2) * move**4
    spread = spread * phi / 2
    if p.first_layer == "gaussian":  # ‖w_i‖² itself, and the share of the step's norm that follows it
        spread = spread + (1 + phi * m2 * (w @ (kk * (g**2 - 1))) / 2 * move**2) ** 2
    return spread


@dataclass(frozen=True)
class Modes:
    """The leading modes of μ1: μ1(u, z) = Σ_r c[u, r] rows[z, r].

    c : (U, R).  rows : (Z, R).  left : (Z, R) orthonormal, modes of √p_z μ1.
    """

    c: np.ndarray
    rows: np.ndarray
    left: np.ndarray


def modes(mu1, pz, pu, floor=0.0):
    """`Modes` of mu1 (U, Z) under the weights pz (Z,) and pu (U,)."""
    left, size, right = np.linalg.svd((mu1 * np.sqrt(pz)).T * np.sqrt(pu), full_matrices=False)
    keep = size > _RANK * max(size[0], floor)
    c = (right[keep].T * size[keep]) / np.sqrt(pu)[:, None]
    rows = mu1.T @ (right[keep].T * np.sqrt(pu)[:, None] / size[keep])
    return Modes(c, rows, left[:, keep])


@dataclass(frozen=True)
class Features:
    p: Problem
    batch: FirstBatch
    units: Units
    modes: Modes
    other: dict
    z: np.ndarray
    chi: np.ndarray
    pz: np.ndarray
    m: np.ndarray
    noise: np.ndarray
    t: np.ndarray
    unseen: np.ndarray
    away: float

    def dim(self, k):
        d = self.p.d - 1
        return 1.0 if k == 0 else d if k == 1 else d * (d + 1) / 2 - 1 if k == 2 else d * (d - 1) * (d + 4) / 6

    @cached_property
    def scale(self):
        """Factors on a packed state: the roots of the nodes' weights on log κ and log q, 1 on S."""
        return np.concatenate([np.sqrt(self.pz), np.sqrt(self.units.chance), np.ones(4 * self.modes.c.shape[1] ** 2)])

    def start(self, solution=None):
        """A packed state to iterate from; `solution`, at another step size, is carried over if it fits."""
        if solution is None or solution.kappa.size != self.z.size:
            return np.zeros(self.scale.size)
        carry = np.kron(np.eye(2), self.modes.left.T @ solution.left)
        self_energy = (carry @ solution.S @ carry.T).ravel()
        return self.scale * np.concatenate([np.log(solution.kappa), np.log(solution.q), self_energy])

    def solution(self, state):
        """The `Solution` that a packed state stands for."""
        Z, U = self.z.size, self.units.u.size
        x = state / self.scale
        S = x[Z + U :].reshape(2 * (2 * self.modes.c.shape[1],))
        return Solution(np.exp(x[:Z]), np.exp(x[Z : Z + U]), S, self.modes.left)


@dataclass(frozen=True)
class Solution:
    """kappa : (Z,) leverages.  q : (U,) susceptibilities.  S : (m, m) self-energy in the modes left (Z, R)."""

    kappa: np.ndarray
    q: np.ndarray
    S: np.ndarray
    left: np.ndarray


DEG = 3


def sphere_rule(f, mean, std, d, step=0.3, reach=6.0):
    if not f.kinks:
        g = np.arange(-reach, reach + step / 2, step)
        w = np.ones_like(g)
    else:
        lo = -np.minimum(reach, sqrt(d)) * np.ones(mean.shape)[..., None]
        at = np.stack([np.clip((k - mean) / std, lo[..., 0], -lo[..., 0]) for k in f.kinks], -1)
        edges = np.concatenate([lo, np.sort(at, -1), -lo], -1)
        x, wx = np.polynomial.legendre.leggauss(24)
        width = np.diff(edges, axis=-1)[..., None]
        g = (edges[..., :-1, None] + width * (x + 1) / 2).reshape(*mean.shape, -1)
        w = (width * wx / 2).reshape(*mean.shape, -1)
    inside = np.minimum(g**2 / d, 1 - 1e-12)
    w = w * np.exp((d - 3) / 2 * np.log1p(-inside)) * (g**2 < d)
    return g, w / w.sum(-1, keepdims=True)


def harmonics(s, d):
    """P_0..P_3 orthonormal for one coordinate of a direction uniform on the sphere of radius sqrt d."""
    four, six = 3 * d / (d + 2), 15 * d**2 / ((d + 2) * (d + 4))
    P3 = s**3 - four * s
    return [np.ones_like(s), s, (s**2 - 1) / sqrt(four - 1), P3 / sqrt(six - four**2)]


def expand(f, mean, std, d):
    """E[f P_k], k = 0..DEG and the rest's second moment."""
    g, w = sphere_rule(f, mean, std, d)
    values = f(mean[..., None] + std[..., None] * g)
    weighted = w * values
    coefficients = np.array([(weighted * P).sum(-1) for P in harmonics(g, d)[: DEG + 1]])
    rest = (weighted * values).sum(-1) - (coefficients**2).sum(0)
    return coefficients, np.maximum(rest, 0)


def features(p: Problem, eta, batch, values, step_noise, order):
    strip = 1 / sqrt(1 + (eta * p.student.linear) ** 2 * batch.D / p.N / 4)
    z, pz = trapezoid(order, strip)
    away = sqrt((batch.phi * batch.moment(2) + np.sum(batch.mean[1:] ** 2)) / batch.D)
    hidden = units(p, eta, batch, away, values, step_noise, order, strip)
    d = p.d - 1
    root = np.sqrt((4 / d) ** 2 + 8 / d)
    lo, hi = (4 / d - root) / 2, (4 / d + root) / 2
    chi = np.sqrt(1 + np.array([lo, hi]))
    pc = np.array([hi, -lo]) / (hi - lo)
    z, chi, pz = np.repeat(z, 2), np.tile(chi, z.size), np.outer(pz, pc).ravel()
    m, noise = expand(p.student, hidden.u[:, None] * z, np.sqrt(hidden.rr)[:, None] * chi, d)
    t, unseen = expand(p.target, batch.cosine[0] * z, away * chi, d)
    other = {k: modes(m[k], pz, hidden.chance, 1e-3 if k else 0.0) for k in (0, *range(2, DEG + 1))}
    return Features(p, batch, hidden, modes(m[1], pz, hidden.chance), other, z, chi, pz, m, noise, t, unseen + p.noise**2, away)


@dataclass(frozen=True)
class Pencil:
    """The linear part of the ridge problem in the span of μ1's modes, with M and C eliminated.

    Its resolvent is [Γ⁻¹ + A_0 + M A_1 + M² A_2 + C A_3]⁻¹, the upper block of the inverse of the pencil
    L = Q_0 + (1/n) Σ_μ x_μx_μᵀ ⊗ Y(y_μ) with Q_0 = diag(Γ⁻¹ + A_0, -A_2⁻¹) and
    Y(y) = y [[A_1, 1], [1, 0]] + y² [[A_3, 0], [0, 0]]. Its deterministic equivalent is G = (Q_0 + S)⁻¹, S = E Ỹ(y),
    Ỹ = (1 + φYG)⁻¹Y.

    g : (Z,) weights of the samples.  gamma_inv : (R, R) Γ⁻¹, Γ = rowsᵀ g rows.  bare : (m, m) Q_0⁻¹.  G : (m, m).
    lower : (m, m), (Q_0 + S)⁻¹-weighted self-energy, from which M²T is read.  dressed : (Y, m, m), Ỹ at the nodes.
    """

    g: np.ndarray
    gamma_inv: np.ndarray
    bare: np.ndarray
    G: np.ndarray
    lower: np.ndarray
    dressed: np.ndarray


def pencil(f: Features, now: Solution, omega):
    """`Pencil` at κ, q, S when the samples at node z carry weight omega (Z,) or 1.0."""
    R, c, rows = f.modes.c.shape[1], f.modes.c, f.modes.rows
    g = f.pz * omega / (1 + omega * now.kappa)
    gamma_inv = np.linalg.inv((rows.T * g) @ rows)
    A = (f.p.N / f.dim(1)) * ((f.units.mix * (f.units.chance * now.q))[:, None, :] * c.T) @ c
    one, none = np.eye(R), np.zeros((R, R))
    bare = np.block([[np.linalg.inv(gamma_inv + A[0]), none], [none, -A[2]]])
    y = f.batch.y[:, None, None]
    Y = y * np.block([[A[1], one], [one, none]]) + y**2 * np.block([[A[3], none], [none, none]])
    shift = np.linalg.inv(np.eye(2 * R) + now.S @ bare)
    G = bare @ shift
    dressed = np.linalg.solve(np.eye(2 * R) + f.batch.phi * Y @ G, Y)
    return Pencil(g, gamma_inv, bare, G, shift @ now.S, dressed)


def update(f: Features, state, omega):
    """One pass of the fixed-point map: new packed (κ, q, S) from old."""
    p, batch, c, rows, R = f.p, f.batch, f.modes.c, f.modes.rows, f.modes.c.shape[1]
    now = f.solution(state)
    at = pencil(f, now, omega)
    G, S = at.G, at.lower
    means = np.tensordot(batch.one * batch.y ** np.arange(3)[:, None], at.dressed, 1)  # E y^k Ỹ
    trace = [G, -batch.phi * G @ means[1] @ G, None, batch.moment(2) * G - batch.phi * G @ means[2] @ G]
    trace = np.array([trace[0][:R, :R], trace[1][:R, :R], -S[R:, R:], trace[3][:R, :R]])  # of T, MT, M²T, CT
    seen = (f.units.mix * np.sum(c @ trace * c, axis=-1)).sum(0)
    noise = (f.units.chance * now.q) @ f.noise
    linear = at.gamma_inv - at.gamma_inv @ trace[0] @ at.gamma_inv  # (1 - T_zz)/g_z in the modes
    new_kappa = (p.N / p.n) * noise + f.dim(1) / p.n * np.sum(rows @ linear * rows, axis=1)
    for k, md in f.other.items():
        bent, kept = _resolved(f, k, now, at.g)
        seen = seen + np.sum(md.c @ bent * md.c, axis=-1)
        new_kappa = new_kappa + f.dim(k) / p.n * np.sum(md.rows @ kept * md.rows, axis=1)
    new_q = 1 / (p.ridge + f.noise @ at.g + seen)
    return f.scale * np.concatenate([np.log(new_kappa), np.log(new_q), means[0].ravel()])


def _resolved(f, k, now, g, scale=1.0):
    """In the modes of degree k: (Gamma^-1 + A)^-1 and (1 - T)/g, T = [I + (N/D)<q m m^T>]^-1."""
    c, rows = f.other[k].c, f.other[k].rows
    A = (f.p.N / f.dim(k)) * (c.T * (f.units.chance * now.q * scale)) @ c
    gamma = (rows.T * g) @ rows
    kept = np.linalg.inv(np.linalg.inv(A) + gamma)
    return gamma - gamma @ kept @ gamma, kept


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
    batch, R, Z = f.batch, f.modes.c.shape[1], f.z.size
    A, m = batch.mean.size, 2 * R
    between, onto, itself = _resolved_forms(batch, at)
    basis = (f.modes.rows * np.sqrt(at.g)[:, None]) @ at.gamma_inv
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
    itself = itself + batch.phi / batch.D * (batch.moment(2) * at.G - batch.phi * at.G @ square @ at.G)
    return between, onto, itself


def training_loss(f: Features, state, omega):
    """L_tr when the samples at node z carry weight omega."""
    now = f.solution(state)
    at = pencil(f, now, omega)
    known, root = directions(f, at), np.sqrt(at.g)
    sh, d, Z = f.units.shape, f.p.d, f.z.size
    strength = np.sqrt(f.p.N * f.units.chance * now.q)
    share = f.units.chance * now.q
    one = np.eye(Z)
    bend = f.m[1] * root
    had = one + f.p.N / f.dim(1) * (bend.T * (share * sh[0, 0])) @ bend
    top = one + f.z[:, None] * (known.inverse - had) * f.z * TERMS["square"]
    spikes = (f.m[0] * root).T * strength
    corner = np.eye(f.units.u.size)
    linear = root * f.t[1] / f.away
    mean = root * f.t[0] - f.z * (known.leak[0] @ linear)
    along = np.zeros(f.units.u.size)

    def T(k, scale=1.0):
        rows = f.other[k].rows * root[:, None]
        return one - rows @ _resolved(f, k, now, at.g, scale)[1] @ rows.T

    bent = root * f.t[2]
    T2 = T(2, sh[1, 1] ** 2)
    loss = (at.g * f.unseen).sum() + bent @ T2 @ bent
    for k in range(3, DEG + 1):
        loss = loss + (root * f.t[k]) @ T(k) @ (root * f.t[k])
    if TERMS["coherent"]:
        Tz = known.seen[0][0] / f.away**2
        P1 = (f.m[2] * root * f.z / f.chi * (sqrt(2) / d * sh[0, 1])[:, None]).T * strength
        P2 = (f.m[2] * root * ((sh[1, 1] - 1) / d)[:, None]).T * strength
        corner = corner + P1.T @ Tz @ P1 + P2.T @ T2 @ P2
        along = along - P1.T @ Tz @ (root * f.t[1]) - P2.T @ T2 @ bent
    if TERMS["cubic"]:
        V = (f.m[2] * root).T * strength
        K = f.units.mix.T @ pair_traces(f.batch) @ f.units.mix - 1
        corner = corner + K / d * (V.T @ T(2) @ V)
    if len(known.seen) == 2:
        start = bend.T * (strength * f.units.overlap)
        spikes = spikes - f.z[:, None] * (known.leak[1] @ start)
        corner = corner + start.T @ (known.seen[1][1] - known.generic) @ start
        along = along - start.T @ known.seen[1][0] @ linear
    system = np.block([[top, spikes], [spikes.T, -corner]])
    target = np.concatenate([mean, along])
    return loss + linear @ known.seen[0][0] @ linear + target @ np.linalg.solve(system, target)
