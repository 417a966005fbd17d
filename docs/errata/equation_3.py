"""Equation (3), the gain of the test error with one spike, lacks the factor φ/(ψ m₁²). Setting 1, λ = .01."""

import numpy as np

n, d, N, ridge, trials, D = 240, 72, 120, 0.01, 800, 1 + 0.3 * 2  # D = c⋆₁² + φ(c⋆² + σ_ε²)
rng, lines = np.random.default_rng(1), []
for _ in range(trials):
    teacher = rng.standard_normal(d) / d**0.5
    X, X2, W0, a = (rng.standard_normal(size) for size in ((n, d), (n, d), (N, d), N))
    y, y2 = (A @ teacher + rng.standard_normal(n) for A in (X, X2))
    F0 = np.maximum(X2 @ (W0 / np.linalg.norm(W0, axis=1, keepdims=True)).T, 0) - (2 * np.pi) ** -0.5
    F1 = F0 + 1e3 * np.outer(X2 @ (X.T @ y / n), a)  # the spike of F_1, strong enough for its limit
    R0, R1 = (np.linalg.inv(F @ F.T + ridge * n * np.eye(n)) for F in (F0, F1))
    error = [np.mean((R @ y2 / np.diag(R)) ** 2) for R in (R0, R1)]  # test error, one sample left out at a time
    m1, slope = N / n * np.trace(R0), N / d * np.sum((R0 @ X2) ** 2)  # m₁ and -∂m₂/∂λ, by their definitions
    lines.append([slope / D, N / n / m1**2 * slope / D, error[0] - error[1]])
for name, values in zip(("printed", "corrected", "simulated"), np.transpose(lines), strict=True):
    print(f"{name:10} {values.mean():8.3f} ± {values.std(ddof=1) / trials**0.5:.3f}")
