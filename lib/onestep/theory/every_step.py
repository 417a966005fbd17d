"""One theory for every step size, 0 <= η <= Θ(√n): conditional Gaussian equivalence and its fixed point.

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
and a unit with spike u has susceptibility q(u): the fixed point solved here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import sqrt

import numpy as np
from numpy.polynomial import hermite_e
from scipy import optimize
from scipy.sparse.linalg import LinearOperator, gmres

from .. import checks
from ..problem import Problem

STEP_NOISE = ("correlated", "isotropic", "absent")
_TOLERANCE = 1e-9  # on the fixed point's residual (relative changes of κ and q, absolute of the self-energy)
# Relative change of either loss allowed when the quadrature is refined by half; typically ten times less.
_QUADRATURE = 1e-4
_ORDERS = (26, 39, 58, 87, 130)
_RANK = 1e-7  # relative size of the directions of μ1 kept: the losses feel the square of what is dropped
_WIDEST = 1e26  # units: rounding of μ0 weighs √N, and from here on it would look like a feature
_IMAGINARY = 1e-30  # complex step: derivatives exact to rounding, since nothing is subtracted


@dataclass(frozen=True)
class Losses:
    """Predicted losses; arrays shaped like eta.

    train : L_tr, the penalty included.  test : L_te, label noise included.
    residual : largest violation of the fixed point's equations (below 1e-9, else an error was raised).
    """

    train: np.ndarray
    test: np.ndarray
    residual: np.ndarray


def losses(p, eta, readout="gaussian", step_samples=None, step_noise="correlated"):
    """Train and test loss after one gradient step of any size from 0 to Θ(√n).

    Parameters
    ----------
    p : Problem.
    eta : step size, a number or 1-D array, >= 0.
    readout : law of √N a_i: "gaussian", or a list of equally likely values with mean square 1
        ([1.0]: all equal, as in Cui et al.).
    step_samples : size of the batch that the gradient step uses; p.n when None.
    step_noise : "correlated" keeps the law of the gradient's part that is not rank one, "isotropic" only its size,
        "absent" nothing: the spike alone.

    Raises ValueError on bad input and ArithmeticError when the fixed point or the quadrature does not converge.

    Source: this project, from the Gaussian equivalence of Moniri et al. (ICML 2024) conditioned on β̂ᵀx, as
    Cui et al. (ICML 2024) do for α = 1/2; derived in the notebook on every step size.
    """
    eta = checks.steps(eta)
    flat = np.atleast_1d(eta)
    family, largest = _resolved(p, flat.max(), readout, step_samples, step_noise)
    out, state = np.empty((3, flat.size)), largest[1]
    for j in np.argsort(-flat, kind="stable"):
        out[:, j], state = largest if flat[j] == flat.max() else family.evaluate(flat[j], state)
    return Losses(*(row.reshape(eta.shape)[()] for row in out))


@dataclass(frozen=True)
class Best:
    """The best choice found: step size eta, ridge, and the predicted train and test loss there."""

    eta: float
    ridge: float
    train: float
    test: float


def best_step(p, largest=None, **options):
    """The step size in [0, largest] with the smallest predicted test error; a `Best`.

    largest : defaults to 3√n; steps of order √n are the largest the theory covers, so a minimum there is no optimum.
    options : as for `losses`.
    """
    largest = 3 * sqrt(p.n) if largest is None else checks.number("largest", largest, above=0)
    grid = np.concatenate([[0.0], largest * np.geomspace(min(0.1, 0.1 / largest), 1, 24)])
    family, (_, state) = _resolved(p, largest, **options)

    def test(eta):
        nonlocal state
        (_, error, _), state = family.evaluate(eta, state)
        return error

    eta = _least(grid[::-1], test)
    found = losses(p, eta, **options)
    return Best(eta, p.ridge, float(found.train), float(found.test))


def best_ridge(p, eta, smallest=1e-6, largest=1e3, **options):
    """The ridge in [smallest, largest] with the smallest predicted test error after a step eta; a `Best`."""
    eta = checks.number("eta", eta, least=0)
    smallest = checks.number("smallest", smallest, above=0)
    largest = checks.number("largest", largest, above=smallest)

    family, (_, state) = _resolved(p.replace(ridge=smallest), eta, **options)

    def test(log_ridge):
        nonlocal state
        (_, error, _), state = replace(family, p=p.replace(ridge=float(np.exp(log_ridge)))).evaluate(eta, state)
        return error

    ridge = float(np.exp(_least(np.linspace(np.log(smallest), np.log(largest), 15), test)))
    found = losses(p.replace(ridge=ridge), eta, **options)
    return Best(eta, ridge, float(found.train), float(found.test))


def _least(grid, function):
    """Minimiser of function between the neighbours of the grid's best point; that point if nothing beats it."""
    values = [function(x) for x in grid]
    j = int(np.argmin(values))
    bounds = sorted((grid[max(0, j - 1)], grid[min(grid.size - 1, j + 1)]))
    found = optimize.minimize_scalar(
        function, bounds=bounds, method="bounded", options={"xatol": 1e-3 * (bounds[1] - bounds[0])}
    )
    return float(found.x if found.fun < values[j] else grid[j])


def _readout_values(readout):
    if isinstance(readout, str):
        checks.choice("readout", readout, ("gaussian",))
        return None
    values = np.asarray(readout, float)
    if values.ndim != 1 or values.size == 0 or not np.all(np.isfinite(values)) or abs(np.mean(values**2) - 1) > 1e-9:
        raise ValueError(f'readout = {readout!r}: must be "gaussian" or a list of values of √N a_i with mean square 1')
    return values


def _resolved(p, eta, readout="gaussian", step_samples=None, step_noise="correlated"):
    """The coarsest quadrature whose losses at the largest step agree with the next one's, and the solution there."""
    values = _readout_values(readout)
    checks.choice("step_noise", step_noise, STEP_NOISE)
    phi = p.phi if step_samples is None else p.d / checks.whole("step_samples", step_samples, 1)
    if p.student.coefficients(1)[1] == 0:
        raise ValueError(f"activation = {p.activation!r}: c_1 = 0, but without it the step makes no spike")
    if p.N > _WIDEST:
        raise ValueError(f'N = {p.N:.3g}: must be at most {_WIDEST:g} here; method="spiked" has no such limit')
    last = None
    for order in _ORDERS:
        family = _Family(p, values, phi, step_noise, order)
        now = family.evaluate(eta)
        if last is not None:
            change = np.max(np.abs(now[0][:2] / last[1][0][:2] - 1))
            if change < _QUADRATURE:
                return last
        last = family, now
    raise ArithmeticError(f"the losses at eta = {eta:g} still change by {change:.1e} at {order} quadrature nodes: {p}")


def _gauss_hermite(order):
    x, w = hermite_e.hermegauss(order)
    return x, w / w.sum()


def _trapezoid(order, strip):
    """Trapezoid rule for N(0, 1), cut where its two errors balance for integrands analytic within `strip` of the axis.

    κ(z) and q(u) have poles at such a distance, which Gauss-Hermite quadrature feels more.
    """
    x = np.linspace(-1, 1, order) * np.cbrt(2 * np.pi * strip * order)
    w = np.exp(-(x**2) / 2)
    return x, w / w.sum()


@dataclass(frozen=True)
class _FirstBatch:
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


def _first_batch(p, phi, order):
    """Gauss quadrature in y by the Lanczos recursion, from a fine grid of the teacher's input and the noise."""
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
    basis, diagonal, off = [root / np.linalg.norm(root)], [], []
    while True:
        v = y * basis[-1]
        diagonal.append(v @ basis[-1])
        for _ in range(2):
            v = v - np.array(basis).T @ (np.array(basis) @ v)
        if len(diagonal) == order // 2 + 4 or np.linalg.norm(v) < 1e-9 * np.linalg.norm(y * root):
            break
        off.append(np.linalg.norm(v))
        basis.append(v / off[-1])
    nodes, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1))
    weights = vectors[0] * (np.array([*along, *chain(*pair)]) * root @ np.array(basis).T @ vectors)
    A = len(along)
    return _FirstBatch(phi, nodes, vectors[0] ** 2, weights[:A], weights[A:].reshape(A, A, -1))


class _Equivalent:
    """The equivalent Gaussian features at one step size on fixed nodes: the fixed-point map and the training loss.

    A state packs log κ (Z,), log q (U,), each scaled by the root of its node's weight, and the self-energy S (2R, 2R)
    of the pencil in M and C. Every method accepts complex states: that is how derivatives are taken.
    """

    def __init__(self, p, eta, batch, values, step_noise, order):
        self.p, self.batch = p, batch
        f = p.student
        c1, c2 = f.linear, f.coefficients(2)[2]
        m2, rootD = batch.moment(2), sqrt(batch.D)
        strip = 1 / sqrt(1 + (eta * c1) ** 2 * batch.D / p.N / 4)
        self.z, self.pz = _trapezoid(order, strip)
        a, self.pu = _trapezoid(order, strip) if values is None else (values, np.full(values.size, 1 / values.size))
        a = a / sqrt(p.N)
        u = eta * c1 * rootD * a
        if p.initial_output == "full":
            u = u - c1 * a / rootD  # w_i overlaps with W0ᵀa by a_i, and β contains -c_1 W0ᵀa
        t = 2 * c2 * eta * a
        v = (eta * a) ** 2 * batch.phi * max(0.0, f.slope_second_moment - c1**2 - 4 * c2**2)
        if step_noise == "absent":
            t, v = 0 * t, 0 * v
        rr = 1 + t**2 * batch.phi * m2 + v * m2
        self.norm_spread = _norm_spread(p, batch, eta * a, rr, step_noise)
        self.mix = np.array([np.ones_like(t), 2 * t, t**2, v]) / rr  # Σ_u/r² = mix · (I, M, M², C)
        if step_noise == "isotropic":
            self.mix = np.array([[1.0], [0.0], [0.0], [0.0]]) + 0 * t
        self.mu0, mu1, self.mu2sq, self.bend = _conditional_moments(f, u, self.z, rr)
        self.swell = rr[:, None] * self.bend  # the length of x, ‖x‖² = d (1 + ξ), makes all units' μ0 grow by ξ swell
        left, size, right = np.linalg.svd((mu1 * np.sqrt(self.pz)).T * np.sqrt(self.pu), full_matrices=False)
        keep = size > _RANK * size[0]
        self.modes = left[:, keep]
        self.c = (right[keep].T * size[keep]) / np.sqrt(self.pu)[:, None]  # μ1(u, z) = Σ_r c[u, r] rows[z, r]
        self.rows = mu1.T @ (right[keep].T * np.sqrt(self.pu)[:, None] / size[keep])
        self.overlap = a / np.sqrt(rr)
        rho = batch.mean[0] / rootD
        self.away = sqrt((batch.phi * m2 + np.sum(batch.mean[1:] ** 2)) / batch.D)  # sine of the angle of β and β⋆
        self.h0, self.h1, square = p.target.moments(rho * self.z, np.full(self.z.shape, self.away))
        self.unseen = np.maximum(square - self.h0**2 - self.h1**2, 0) + p.noise**2
        self.scale = np.concatenate([np.sqrt(self.pz), np.sqrt(self.pu), np.ones(4 * self.c.shape[1] ** 2)])

    def start(self, state=None):
        """A state to iterate from; `state` = (κ, q, S, modes) at another step size is carried over."""
        R = self.c.shape[1]
        if state is None or state[0].size != self.z.size:
            return np.zeros(self.scale.size)
        kappa, q, S, modes = state
        carry = np.kron(np.eye(2), self.modes.T @ modes)
        return self.scale * np.concatenate([np.log(kappa), np.log(q), (carry @ S @ carry.T).reshape(4 * R * R)])

    def split(self, state):
        """κ (Z,), q (U,), S (2R, 2R)."""
        Z, U = self.z.size, self.pu.size
        x = state / self.scale
        return np.exp(x[:Z]), np.exp(x[Z : Z + U]), x[Z + U :].reshape(2 * (2 * self.c.shape[1],))

    def _pencil(self, state, omega):
        """What the map and the loss share: weights g, q, Γ⁻¹, the resolvent G without and with M and C, and Ỹ(y).

        In the span of μ1's modes the ridge problem's resolvent is [Γ⁻¹ + A_0 + M A_1 + M² A_2 + C A_3]⁻¹, the upper
        block of the inverse of the pencil L = Q_0 + (1/n) Σ_μ x_μx_μᵀ ⊗ Y(y_μ) with Q_0 = diag(Γ⁻¹ + A_0, -A_2⁻¹) and
        Y(y) = y [[A_1, 1], [1, 0]] + y² [[A_3, 0], [0, 0]]. Its deterministic equivalent is G = (Q_0 + S)⁻¹,
        S = E Ỹ(y), Ỹ = (1 + φYG)⁻¹Y.
        """
        kappa, q, S = self.split(state)
        R = self.c.shape[1]
        g = self.pz * omega / (1 + omega * kappa)
        gamma_inv = np.linalg.inv((self.rows.T * g) @ self.rows)
        A = (self.p.N / self.p.d) * ((self.mix * (self.pu * q))[:, None, :] * self.c.T) @ self.c
        one, none = np.eye(R), np.zeros((R, R))
        bare = np.block([[np.linalg.inv(gamma_inv + A[0]), none], [none, -A[2]]])
        y = self.batch.y[:, None, None]
        Y = y * np.block([[A[1], one], [one, none]]) + y**2 * np.block([[A[3], none], [none, none]])
        shift = np.linalg.inv(np.eye(2 * R) + S @ bare)
        G = bare @ shift
        dressed = np.linalg.solve(np.eye(2 * R) + self.batch.phi * Y @ G, Y)
        return g, q, gamma_inv, bare, G, shift @ S, dressed

    def update(self, state, omega):
        """One pass of the fixed-point map: new (κ, q, S) from old."""
        p, batch, R = self.p, self.batch, self.c.shape[1]
        g, q, gamma_inv, _, G, S, dressed = self._pencil(state, omega)
        means = np.tensordot(batch.one * batch.y ** np.arange(3)[:, None], dressed, 1)  # E y^k Ỹ
        trace = [G, -batch.phi * G @ means[1] @ G, None, batch.moment(2) * G - batch.phi * G @ means[2] @ G]
        trace = np.array([trace[0][:R, :R], trace[1][:R, :R], -S[R:, R:], trace[3][:R, :R]])  # of T, MT, M²T, CT
        seen = (self.mix * np.sum(self.c @ trace * self.c, axis=-1)).sum(0)
        new_q = 1 / (p.ridge + self.mu2sq @ g + seen)
        linear = gamma_inv - gamma_inv @ trace[0] @ gamma_inv  # (1 - T_zz)/g_z in the modes
        noise = (self.pu * q) @ self.mu2sq
        new_kappa = (p.N / p.n) * noise + (p.d / p.n) * np.sum(self.rows @ linear * self.rows, axis=1)
        return self.scale * np.concatenate([np.log(new_kappa), np.log(new_q), means[0].ravel()])

    def train(self, state, omega):
        """L_tr when the samples at node z carry weight omega_z."""
        p = self.p
        g, q, gamma_inv, bare, G, _, dressed = self._pencil(state, omega)
        root, one = np.sqrt(g), np.eye(self.z.size)
        inverse, seen, leak, generic = self._directions(root, gamma_inv, bare, G, dressed)
        top = one + self.z[:, None] * (inverse - one) * self.z
        bend = self.bend * root
        top = top + 2 * (p.N / p.d) * (bend.T * (self.pu * q * self.norm_spread)) @ bend
        strength = np.sqrt(p.N * self.pu * q)
        spikes = (self.mu0 * root).T * strength
        swell = np.sqrt(self.pu * q)[:, None] * self.swell * root
        corner = np.eye(self.pu.size) + 2 * (p.N / p.d) * swell @ swell.T
        linear = root * self.h1 / self.away
        mean = root * self.h0 - self.z * (leak[0] @ linear)
        along = np.zeros(self.pu.size)
        if len(seen) == 2:  # w_i has mean a_i along W0ᵀa, which β̂ knows: no generic sum of weights any more
            start = ((self.c @ self.rows.T) * root).T * (strength * self.overlap)
            spikes = spikes - self.z[:, None] * (leak[1] @ start)
            corner = corner + start.T @ (seen[1][1] - generic) @ start
            along = -start.T @ seen[1][0] @ linear
        # (top + spikes corner⁻¹ spikesᵀ)⁻¹ as one system, nothing squared: spikes reach √N
        system = np.block([[top, spikes], [spikes.T, -corner]])
        target = np.concatenate([mean, along])
        return (g * self.unseen).sum() + linear @ seen[0][0] @ linear + target @ np.linalg.solve(system, target)

    def _directions(self, root, gamma_inv, bare, G, dressed):
        """How the linear problem treats the directions e_a (the teacher's; W0ᵀa) next to β̂.

        Returns T_β̂β̂⁻¹; T between e_a and e_b with β̂ projected out; the leak of e_a into β̂; and T of a direction
        that the first batch does not know: (Z, Z) matrices.
        """
        batch, R, Z = self.batch, self.c.shape[1], self.z.size
        A, m = batch.mean.size, 2 * R
        wide = np.kron(np.eye(A), bare)
        both = np.tensordot(batch.pair, dressed, 1).transpose(0, 2, 1, 3).reshape(A * m, A * m)
        between = wide @ np.linalg.inv(np.eye(A * m) + both @ wide)
        pull = np.tensordot(batch.along * batch.y, dressed, 1)
        toward = np.concatenate([c * np.eye(m) - batch.phi * w @ G for c, w in zip(batch.mean, pull, strict=True)])
        square = np.tensordot(batch.one * batch.y**2, dressed, 1)
        onto = between @ toward / sqrt(batch.D)
        itself = toward.T @ onto / sqrt(batch.D)
        itself = itself + batch.phi / batch.D * (batch.moment(2) * G - batch.phi * G @ square @ G)
        basis = (self.rows * root[:, None]) @ gamma_inv

        def lifted(form, overlap):
            return overlap * np.eye(Z) - basis @ (overlap * np.linalg.inv(gamma_inv) - form) @ basis.T

        def block(matrix, a, b=0):
            return matrix[a * m : a * m + R, b * m : b * m + R]

        cosine = batch.mean / sqrt(batch.D)
        inverse = np.linalg.inv(lifted(itself[:R, :R], 1.0))
        cross = [lifted(block(onto, a), cosine[a]) for a in range(A)]
        pairs = [[lifted(block(between, a, b), float(a == b)) for b in range(A)] for a in range(A)]
        seen = [[pairs[a][b] - cross[a] @ inverse @ cross[b].T for b in range(A)] for a in range(A)]
        leak = [cosine[a] * np.eye(Z) - inverse @ cross[a].T for a in range(A)]
        return inverse, seen, leak, lifted(G[:R, :R], 1.0)


def _norm_spread(p, batch, move, rr, step_noise):
    """(d/2) Var ‖ω_i‖² over w_i for move = η a_i: it makes the units' even parts differ, which the readout can use.

    From ‖ω_i‖² = ‖w_i‖² + 2 move·(1/n)Σ y_μ h(x_μᵀw_i) + move²‖Xᵀ(y∘k(Xw_i))/n‖² with k = σ' - c_1, h(g) = g k(g). The
    fluctuation along β̂ᵀw_i, present when c_3 != 0, only shifts u_i by a relative 1/√d and is left out.
    """
    if step_noise != "correlated":
        return rr**2 if p.first_layer == "gaussian" else np.zeros_like(rr)
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


def _conditional_moments(f, u, z, rr):
    """μ0, μ1, μ2² and ∂μ0/∂r² on the grid u × z."""
    mean, r = u[:, None] * z, np.sqrt(rr)[:, None]
    g, w = f.nodes(mean, np.broadcast_to(r, mean.shape))
    values = f(mean[..., None] + r[..., None] * g)
    weighted = w * values
    mu0, mu1 = weighted.sum(-1), (weighted * g).sum(-1)
    second = (weighted * values).sum(-1)
    bend = ((weighted * g * g).sum(-1) - mu0) / (2 * r**2)
    return mu0, mu1, np.maximum(second - mu0**2 - mu1**2, 0), bend


@dataclass(frozen=True)
class _Family:
    """Equivalent features of one problem at every step size, on the same nodes."""

    p: Problem
    values: np.ndarray | None
    phi: float
    step_noise: str
    order: int

    @cached_property
    def batch(self):
        return _first_batch(self.p, self.phi, self.order)

    def evaluate(self, eta, state=None):
        """((train, test, residual), state) at step eta, from the state at another step if given."""
        model = self._model(eta)
        x, residual = self._fixed_point(model, eta, state)
        train, test = _losses(model, x)
        return np.array([train, test, residual]), (*model.split(x), model.modes)

    def _fixed_point(self, model, eta, state):
        """Solve from `state`, else cold, else by continuation from η = 0 with steps halved when they fail."""
        for start in (state, None) if state is not None else (None,):
            x, residual = _anderson(model, start)
            if residual < _TOLERANCE:
                return x, residual
        reached, attempt, start = 0.0, 0.0, None
        for _ in range(40):
            here = model if attempt == eta else self._model(attempt)
            x, residual = _anderson(here, start)
            if residual < _TOLERANCE and attempt == eta:
                return x, residual
            if residual < _TOLERANCE:
                reached, start = attempt, (*here.split(x), here.modes)
                attempt = eta
            else:
                attempt = (reached + attempt) / 2
        raise ArithmeticError(f"the fixed point did not converge at eta = {eta:g} (residual {residual:.1e}): {self.p}")

    def _model(self, eta):
        return _Equivalent(self.p, eta, self.batch, self.values, self.step_noise, self.order)


def _losses(model, x):
    """L_tr, and L_te from one derivative of it.

    The test error of node z is e_z = ((1 + κ_z)²/p_z) ∂L_tr/∂ω_z (leave-one-out), so L_te = Σ p_z e_z is the derivative
    of L_tr in the single direction ω̇ = (1 + κ)²; the fixed point answers it through one linear solve.
    """
    sway = 1j * _IMAGINARY * (1 + model.split(x)[0]) ** 2

    def tangent(dx):
        return dx - model.update(x + 1j * _IMAGINARY * dx, 1.0).imag / _IMAGINARY

    push = model.update(x, 1 + sway).imag / _IMAGINARY
    operator = LinearOperator((x.size, x.size), tangent, dtype=float)
    response, failed = gmres(operator, push, rtol=1e-9, restart=100, maxiter=3)
    if failed:
        raise ArithmeticError(f"the linear response of the fixed point did not converge: {model.p}")
    return model.train(x, 1.0), model.train(x + 1j * _IMAGINARY * response, 1 + sway).imag / _IMAGINARY


def _anderson(model, state, memory=8, limit=300):
    """Anderson iteration of the fixed-point map from `state`; returns the packed state and its residual."""
    x, past = model.start(state), []
    for _ in range(limit):
        try:
            with np.errstate(all="ignore"):
                step = model.update(x, 1.0) - x
        except np.linalg.LinAlgError:
            return x, np.inf
        residual = np.max(np.abs(step))
        if not np.isfinite(residual) or residual < _TOLERANCE:
            break
        past = [*past[-memory:], (x, step)]
        x = x + step
        if len(past) > 3:
            dx, ds = (np.diff(np.array(column), axis=0).T for column in zip(*past, strict=True))
            x = x - (dx + ds) @ np.linalg.lstsq(ds, step, rcond=1e-12)[0]
    return x, residual
