"""Sizes of the terms of F_ℓ, of what it leaves out, and of the quadratic forms that the losses are made of.

    F_ℓ = F0 + Σ_{k≤ℓ} c_1^k c_k η^k (X̃β)^{∘k} (a^{∘k})ᵀ

Source: Moniri, Lee, Hassani, Dobriban (ICML 2024), theorem on ‖F - F_ℓ‖ and section "Universality".
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from scipy.special import factorial, factorial2

from ..checks import steps, whole
from ..problem import Problem, as_problem
from .quadrature import gauss_hermite
from .random_features import common_part, traces

_NODES = 48  # Gauss-Hermite nodes for kernels in z and u: entire in szu, exact to rounding for s <= 1


def term(p: Problem, eta, k):
    """Limit of ‖c_1^k c_k η^k (X̃β)^{∘k}(a^{∘k})ᵀ‖_op/√n: (c_1 η √D)^k |c_k| (2k-1)!! N^{(1-k)/2}, like eta.

    For η = n^α it is of order n^{(α-1/2)k+1/2}.

    k : Whole number >= 1.
    """
    c = as_problem(p, standard=True).student.coefficients(whole("k", k, 1))
    return (abs(c[1]) * steps(eta) * sqrt(p.D)) ** k * abs(c[k]) * factorial2(2 * k - 1) * float(p.N) ** ((1 - k) / 2)


def omitted(p: Problem, eta, order):
    """Limit of ‖Σ_{k>ℓ} c_1^k c_k η^k (X̃β)^{∘k}(a^{∘k})ᵀ‖_op/√n, the terms that F_ℓ, ℓ = order >= 0, leaves out.

    √N times the norm of the kernel E σ(g + szu) - Σ_{k≤ℓ} c_k (szu)^k, s = c_1 η √(D/N), between z, u ~ N(0, 1); all
    terms at once and at their size at this n, of which the first is of order n^{(α-1/2)(ℓ+1)+1/2}.

    order : >= 0.
    """
    eta, order = steps(eta), whole("order", order, 0)
    z, mass = gauss_hermite(_NODES)
    root = np.sqrt(mass)
    c = as_problem(p, standard=True).student.coefficients(order)
    out = []
    for step in np.atleast_1d(eta):
        t = step * p.student.linear * sqrt(p.D / p.N) * np.outer(z, z)
        kernel = p.student.moments(t, 1.0)[0] - np.polynomial.polynomial.polyval(t, c)
        out.append(sqrt(p.N) * np.linalg.norm(kernel * np.outer(root, root), 2))
    return np.reshape(out, eta.shape)[()]


def forms(p: Problem, order):
    """Limits of v1ᵀR0v2, v in {H_q(z), H_q(z⋆), F0 a, √N F0 a^{∘2}, F0 1/√N, 1}, q = 1..order, R0 = (F0F0ᵀ + λnI)⁻¹.

    z = X̃β/‖β‖, z⋆ = X̃β⋆, negligible initial output. Returns a symmetric matrix (2 order + 4, 2 order + 4).

    R0 acts as 1/(nν) on functions orthogonal to the linear ones and as T/(nν) on those; F0ᵀR0F0 acts as the scalar τ
    on directions independent of F0. The direction 1/√N is not quite one of them: c_2 H_2(w_iᵀx) has the component
    c_2 (‖x‖² - d)/d in common to all i, a rank-one part hδᵀ of F0 with δ along 1 and ‖δ‖² = 2c_2²/ψ. A Gaussian first
    layer gives F0 the mean 1δᵀ of the same size, with δ along the row norms.

    order : Largest degree q >= 1.
    """
    if as_problem(p, standard=True).initial_output == "full":
        raise ValueError('initial_output = "full": the forms are those of the "negligible" one')
    t, q = traces(p), np.arange(1, whole("order", order, 1) + 1)
    scale = np.where(q == 1, t.T, 1.0) * factorial(q) / t.nu
    tau = p.psi / p.phi * t.df
    common = common_part(p, t)
    even = 1 - (1 - tau) / (1 + common)
    constant = 1 / (1 + common) if p.first_layer == "gaussian" else 1.0
    out = np.zeros((2 * order + 4, 2 * order + 4))
    out[: 2 * order, : 2 * order] = np.block(
        [[np.diag(scale), np.diag(scale * p.rho**q)], [np.diag(scale * p.rho**q), np.diag(scale)]]
    )
    out[2 * order :, 2 * order :] = np.diag([tau, 2 * tau + even, even, constant / t.nu])
    out[-3, -2] = out[-2, -3] = even
    return out
