"""Λ_ℓ = -(φ/ψ)² m₁⁻² ∂(Δ_ℓ/λ)/∂λ for ℓ = 3, which the slides do not print. σ = sin(z + π/4), y = H₁ + .4H₂ + .3H₃."""

import numpy as np

n, d, N, ridge, trials = 400, 80, 200, 0.1, 120
c, D, step = np.array([0, 1, 0.4, 0.3]), 1 + 0.2 * (1 + 0.4**2 * 2 + 0.3**2 * 6), 1e-3
xi, factorials = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 3, 0, 1]]), np.array([1, 1, 2, 6])  # z^i = Σ_k ξ_ik H_k(z)
rng, lines = np.random.default_rng(1), []
for _ in range(trials):
    teacher, a = rng.standard_normal(d), rng.standard_normal(N)
    teacher /= np.linalg.norm(teacher)
    X, X2, W0 = (rng.standard_normal(size) for size in ((n, d), (n, d), (N, d)))
    y, y2 = (np.polynomial.hermite_e.hermeval(A @ teacher, c) for A in (X, X2))
    F0 = np.sin(X2 @ (W0 / np.linalg.norm(W0, axis=1, keepdims=True)).T + np.pi / 4) - np.exp(-0.5) / 2**0.5
    z = X2 @ (X.T @ y / n)
    F3 = F0 + 1e3 * sum(np.outer(z**k, a**k) for k in (1, 2, 3))
    R0, R3 = (np.linalg.inv(F @ F.T + ridge * n * np.eye(n)) for F in (F0, F3))
    error = [np.mean((R @ y2 / np.diag(R)) ** 2) for R in (R0, R3)]
    drop = []  # Δ_3/λ at λ ± step, with the traces m₁ and m₂ at first order around λ
    for shift in (-step, step):
        m = np.full(4, np.trace(R0) - shift * n * np.sum(R0**2))
        m[1] = (np.sum(X2 * (R0 @ X2)) - shift * n * np.sum((R0 @ X2) ** 2)) / d
        b = xi @ (m * factorials * D ** (-np.arange(4) / 2) * c)
        drop.append(b @ np.linalg.solve((xi * m * factorials) @ xi.T, b))
    lines.append([(drop[0] - drop[1]) / (2 * step) / np.trace(R0) ** 2, error[0] - error[1]])
for name, values in zip(("predicted", "simulated"), np.transpose(lines), strict=True):
    print(f"{name:10} {values.mean():.3f} ± {values.std(ddof=1) / trials**0.5:.3f}")
