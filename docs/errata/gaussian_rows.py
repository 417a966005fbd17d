"""The 3 of equation (2) is 2 + q₀ with rows of W₀ from N(0, I/d), and 3 with rows of length one. Setting 2, λ = .01."""

import numpy as np

n, d, N, ridge, trials, D = 320, 96, 160, 0.01, 200, 1 + 0.3 * 2
rng = np.random.default_rng(1)
print("rows      | Δ₂ - Δ₁ printed, corrected, simulated")
for rows in ("sphere", "Gaussian"):
    lines = []
    for _ in range(trials):
        teacher = rng.standard_normal(d)
        teacher /= np.linalg.norm(teacher)
        X, X2, W0, a = (rng.standard_normal(size) for size in ((n, d), (n, d), (N, d), N))
        y, y2 = ((A @ teacher) + ((A @ teacher) ** 2 - 1) / 2**0.5 for A in (X, X2))
        z = X2 @ (X.T @ y / n)
        W0 /= np.linalg.norm(W0, axis=1, keepdims=True) if rows == "sphere" else d**0.5
        F0 = np.maximum(X2 @ W0.T, 0) - (2 * np.pi) ** -0.5
        F1 = F0 + 1e3 * np.outer(z, a)
        R0, R1, R2 = (np.linalg.inv(F @ F.T + ridge * n * np.eye(n)) for F in (F0, F1, F1 + 1e3 * np.outer(z**2, a**2)))
        trace = np.trace(R0)  # (ψ/φ) m₁
        tau = n / N * (1 - ridge * trace)
        q0 = 1 if rows == "sphere" else 1 / (1 + trace * (1 - tau) * 2 / (8 * np.pi) * N / d)  # c₂² = 1/(8π)
        printed = 4 * ridge * 0.5 * trace / (3 * D**2)
        lines.append([printed, printed * 3 / (2 + q0), ridge * y2 @ (R1 - R2) @ y2])
    means, errors = np.mean(lines, axis=0), np.std(lines, axis=0, ddof=1) / trials**0.5
    print(f"{rows:9} | {', '.join(f'{mean:.4f} ± {error:.4f}' for mean, error in zip(means, errors, strict=True))}")
