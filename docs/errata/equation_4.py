"""Equation (4), the further gain with two spikes, lacks the factor φ/ψ. Setting 2 of the slides, λ = .01."""

import numpy as np

n, d, N, ridge, trials, D = 400, 120, 200, 0.01, 200, 1 + 0.3 * 2  # D = c⋆₁² + φ c⋆²
rng, lines = np.random.default_rng(1), []
for _ in range(trials):
    teacher = rng.standard_normal(d)
    teacher /= np.linalg.norm(teacher)
    X, X2, W0, a = (rng.standard_normal(size) for size in ((n, d), (n, d), (N, d), N))
    y, y2 = ((A @ teacher) + ((A @ teacher) ** 2 - 1) / 2**0.5 for A in (X, X2))
    z = X2 @ (X.T @ y / n)
    F0 = np.maximum(X2 @ (W0 / np.linalg.norm(W0, axis=1, keepdims=True)).T, 0) - (2 * np.pi) ** -0.5
    F1 = F0 + 1e3 * np.outer(z, a)  # the spikes of F_1 and F_2, strong enough for their limits
    F2 = F1 + 1e3 * np.outer(z**2, a**2)
    R0, R1, R2 = (np.linalg.inv(F @ F.T + ridge * n * np.eye(n)) for F in (F0, F1, F2))
    error = [np.mean((R @ y2 / np.diag(R)) ** 2) for R in (R1, R2)]  # test error, one sample left out at a time
    m1, slope = N / n * np.trace(R0), N * np.sum(R0**2)  # m₁ and -∂m₁/∂λ, by their definitions
    printed = 4 * 0.5 / (3 * D**2 * m1**2) * slope
    lines.append([printed, N / n * printed, error[0] - error[1]])
for name, values in zip(("printed", "corrected", "simulated"), np.transpose(lines), strict=True):
    print(f"{name:10} {values.mean():.3f} ± {values.std(ddof=1) / trials**0.5:.3f}")
