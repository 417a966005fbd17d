"""The staircase: spikes, the plateaus they lead to, and the losses while their strength is finite.

A step of size η adds to F0 the spikes E_k z^{∘k} A_kᵀ, z = X̃β/√D. Where the first ℓ of them are infinitely strong and
the others absent, the losses have fallen by Δ_ℓ and Λ_ℓ; in between, and at every finite n, by what Woodbury's identity
says for spikes of their true strength.

Source: Moniri, Lee, Hassani, Dobriban (ICML 2024), theorems on training and test errors; finite n: this project.
"""

from __future__ import annotations

from math import inf, log, sqrt

import numpy as np
from numpy.polynomial.hermite_e import herme2poly, poly2herme
from scipy.special import factorial, factorial2

from ..checks import flag, steps, whole
from ..problem import Problem, as_problem
from .random_features import Losses, common_part, solved, split, traces, untrained_limit

ORDER = 10  # monomials (X̃β)^{∘k} kept: the series is asymptotic in s = c_1 η √(D/N) …
_REACH = 1 / 4  # … and good to 1 % up to this s


def growth_ratio(p: Problem):
    """q = φ E r² Var σ'/(c_1² D), what the gradient's part that is not rank one adds to a learned feature.

    That part lengthens row i of W by the factor √(1 + η²a_i² `p.row_growth`), independently of x̃, which turns spike k
    from z^k into E_g (z + √q g)^k: z² into z² + q. The term (c_1η)²c_2 D q 1(a∘a)ᵀ that this adds to F is as large as
    spike 2 at every n; F_ℓ of the slides lacks it.
    """
    require_spikes(p, 1)
    return p.row_growth / (p.student.linear**2 * p.D)


def gains(p: Problem, order: int, *, printed: bool = False, growing_rows: bool = False) -> Losses:
    """Plateaus Δ_ℓ = lim L_tr(F0) - L_tr(F) and Λ_ℓ = lim L_te(F0) - L_te(F) for ℓ spikes.

    Δ_ℓ is the slides' theorem in the form λ bᵀΞᵀ(ΞGΞᵀ)⁻¹Ξb, with D of the residual and the mean that Gaussian rows give
    F0; Λ_ℓ follows for every ℓ by generalised cross-validation.

    Parameters
    ----------
    p : the `Problem`; c_1, …, c_ℓ not 0.
    order : number of spikes ℓ >= 0.
    printed : whether both are as the slides print them, with D of the label and no mean of F0, the test error by
        equations (3), (4), which are off; ℓ <= 2.
    growing_rows : False for the features F_ℓ of the slides; True for the network's, whose spikes from the second on
        carry a constant (see `growth_ratio`). Δ_1 and Λ_1 are the same.

    Returns
    -------
    `Losses` with train = Δ_ℓ and test = Λ_ℓ, two floats.
    """
    order = whole("order", order, 0)
    if flag("printed", printed) & flag("growing_rows", growing_rows):
        raise ValueError("growing_rows = True: the slides print no formula with it; leave printed at False")
    if printed and order > 2:
        raise ValueError(f"order = {order}: the slides print test-error gains for orders 1 and 2 only")
    require_spikes(p, order)
    if order == 0:
        return Losses(0.0, 0.0)
    if printed:
        p = p.replace(first_layer="sphere", initial_output="negligible")  # for which the theorem holds as printed
    drop = _drops(p, np.full((1, order), inf), 1.0, growth_ratio(p) if growing_rows else 0.0)
    if not printed:
        return Losses(float(drop.train[0]), float(drop.test[0]))
    t, D = traces(p), p.D
    c1, c2 = p.target.coefficients(2)[1:]
    test = c1**4 / D * -t.dm2
    if order == 2:
        test += 4 * c1**4 * c2**2 / (3 * D**2 * t.m1**2) * -t.dm1
    return Losses(float(drop.train[0]), float(test))


def spiked(p: Problem, eta, *, growing_rows=False, order=None) -> Losses:
    """Losses after a step of size eta from spikes of finite strength beside untrained features, at any n.

    growing_rows : as in `gains`.  order : ℓ >= 1 for the losses of F_ℓ; None for the sum of the series in powers of X̃β.
    """
    eta = steps(eta)
    require_spikes(p, 1)
    largest = _REACH * sqrt(p.N) / (abs(p.student.linear) * sqrt(p.D))
    if order is None and eta.max() > largest * (1 + 1e-12):
        raise ValueError(
            f"eta = {eta.max():g}: without an order spikes are a series in s = c_1 η √(D/N), good to 1 % "
            f"for s <= {_REACH:g}, here for eta <= {largest:.4g}"
        )
    base, kept = untrained_limit(p), ORDER if order is None else whole("order", order, 1)
    c = p.student.coefficients(kept)
    k = np.arange(1, kept + 1)
    with np.errstate(divide="ignore"):
        log_eta, log_c = np.log(np.atleast_1d(eta)), np.log(np.abs(c[1:]))
    strength = k * (log(abs(c[1]) * sqrt(p.D)) + log_eta[:, None]) + log_c + (1 - k) / 2 * log(p.N)
    growth = growth_ratio(p) if flag("growing_rows", growing_rows) else 0.0
    drop = _drops(p, strength, np.sign(c[1]) ** k * np.sign(c[1:]), growth)
    return Losses((base.train - drop.train).reshape(eta.shape)[()], (base.test - drop.test).reshape(eta.shape)[()])


def require_spikes(p, order):
    """Raises ValueError unless p is a `Problem` with c_1, …, c_order != 0."""
    c = as_problem(p, standard=True).student.coefficients(order)
    missing = [k for k in range(1, order + 1) if c[k] == 0]
    if missing:
        raise ValueError(
            f"activation = {p.activation!r}: c_{missing[0]} = 0 to rounding, but spikes 1..{order} need "
            f"c_1, …, c_{order} != 0"
        )


def _drops(p, log_strength, signs, growth):
    """Drops of train loss and test error caused by spikes of given strength.

    log_strength : (M, K), log|E_k| of spike k in each of M cases (±inf allowed).  signs : (K,), signs of E_k, or 1.0
    where all are infinite and signs cancel.
    growth : q of `growth_ratio`, or 0 for the spikes z^{∘k} themselves.

    With z = X̃β/√D, Y = F0 A, A = (g^{∘k}/√N)_k and F = F0 + Σ_k E_k z^{∘k} A_kᵀ, Woodbury's identity gives
        L_tr(F0) - L_tr(F) = λ hᵀ [H + (E⁻¹ + C)(Γ - YᵀR0Y)⁻¹(E⁻¹ + C)ᵀ]⁻¹ h,
    h = ZᵀR0ỹ = Ξb, H = ZᵀR0Z, C = ZᵀR0Y, Γ_jk = E g^{j+k}. C vanishes unless β contains W0ᵀa.
    Rows and columns are scaled by min(1, E) so that no strength over- or underflows.
    """
    K = log_strength.shape[1]
    at, dnu, _ = solved(p.phi, p.psi, p.ridge, p.student.linear, p.student.tail)
    h, H, cross = _spike_forms(p, at, K, growth)
    small = signs * np.exp(np.minimum(log_strength, 0.0))
    inverse_large = np.exp(-np.maximum(log_strength, 0.0))
    right = inverse_large[:, :, None] * np.eye(K) + small[:, :, None] * cross
    Q = small[:, :, None] * small[:, None, :] * H + right @ hidden_metric(p, at, K) @ right.swapaxes(1, 2)
    J, dJ = split(((small * h) * np.linalg.solve(Q, (small * h)[:, :, None])[:, :, 0]).sum(1))
    return Losses(p.ridge * J, -(at.nu.real**2) * dJ * dnu)


def _spike_forms(p, at, K, growth):
    """h (K,), H (K, K) and C (K, K) of `_drops`, at `at`."""
    ranks = np.arange(K + 1)
    # E_g (z + √q g)^i = Σ_k ξ_ik (1 + q)^{(i-k)/2} H_k(z)
    xi = (monomials(K) * (1 + growth) ** (np.maximum(np.subtract.outer(ranks, ranks), 0) / 2))[1:]
    teacher = p.target.coefficients(K) * p.rho**ranks * factorial(ranks)
    teacher[0] = 0.0
    scale = np.full(K + 1, 1 / at.nu)
    scale[1] = at.T / at.nu
    if p.first_layer == "gaussian":
        scale[0] /= 1 + common_part(p, at)
    inside, cross = scale.copy(), np.zeros((K, K))
    if p.initial_output == "full":
        # β holds -c_1 W0ᵀa, which W0 and hence F0 see: its own trace replaces T/ν, and it overlaps with F0 a.
        c1 = p.student.linear
        own = p.psi * (at.nu + p.student.tail) * (1 - at.T) / (at.nu * c1**2)
        inside[1] += c1**2 / p.D * (own - scale[1])
        cross = -p.psi / sqrt(p.D) * (1 - at.T) * xi[:, 1:2] * gaussian_moments(ranks[1:] + 1)
    return xi @ (teacher * scale), (xi * (factorial(ranks) * inside)) @ xi.T, cross


def hidden_metric(p, at, K):
    """(Γ - YᵀR0Y)⁻¹: Γ the moments of the hidden directions a^{∘k}√N^{k-1}, less what F0 uses of them.

    F0 uses the share τ of a generic direction, and e > τ of 1/√N, along which the even ones have the part γ_k = E g^k
    (see `_spike_forms`): Γ - YᵀR0Y = (1 - τ)(A + γγᵀ(1 - e)/(1 - τ)), A = Γ - γγᵀ.
    """
    tau, gamma, inverse = p.psi / p.phi * at.df, gaussian_moments(np.arange(1, K + 1)), _inverse(K)
    share = 1 / (1 + common_part(p, at))  # (1 - e)/(1 - τ)
    toward = inverse @ gamma
    return (inverse - np.outer(toward, toward) * (share / (1 + share * (gamma @ toward)))) / (1 - tau)


def _inverse(K):
    """(Γ - γγᵀ)⁻¹, the Gram matrix of the monomials less their means: Hermite polynomials invert it exactly."""
    hermite = np.array([np.append(herme2poly([0] * k + [1]), [0] * (K - k))[1:] for k in range(1, K + 1)])
    return hermite.T / factorial(np.arange(1, K + 1)) @ hermite


def gaussian_moments(k):
    """E g^k for g ~ N(0, 1) and an array of whole k >= 0: (k - 1)!! for even k, else 0."""
    return np.where(k % 2, 0.0, factorial2(np.maximum(k - 1, 1)))


def monomials(order):
    """ξ with x^i = Σ_k ξ[i, k] H_k(x), i, k = 0..order; shape (order + 1, order + 1), exact integers as floats."""
    rows = np.eye(order + 1)
    return np.array([np.pad(poly2herme(row[: i + 1]), (0, order - i)) for i, row in enumerate(rows)])
