"""The 3 of equation (2) is 2 + q₀ with rows of W₀ from N(0, I/d), and 3 with rows of length one. Setting 2, λ = .01."""

import numpy as np

n, d, N, ridge, trials, D = 320, 96, 160, 0.01, 200, 1 + 0.3 * 2
rng, lines = np.random.default_rng(1), []
for _ in range(trials):
    X, X2, W, a, teacher = (rng.standard_normal(size) for size in ((n, d), (n, d), (N, d), N, d))
    y, y2 = (z + (z**2 - 1) / 2**0.5 for z in (A @ teacher / np.linalg.norm(teacher) for A in (X, X2)))
    z = X2 @ (X.T @ y / n)
    for rows, W0 in (("sphere", W / np.linalg.norm(W, axis=1, keepdims=True)), ("Gaussian", W / d**0.5)):
        F0 = np.maximum(X2 @ W0.T, 0) - (2 * np.pi) ** -0.5
        F1 = F0 + 1e3 * np.outer(z, a)
        R0, R1, R2 = (np.linalg.inv(F @ F.T + ridge * n * np.eye(n)) for F in (F0, F1, F1 + 1e3 * np.outer(z**2, a**2)))
        trace = np.trace(R0)  # (ψ/φ) m₁
        tau = n / N * (1 - ridge * trace)
        q0 = 1 if rows == "sphere" else 1 / (1 + trace * (1 - tau) * 2 / (8 * np.pi) * N / d)  # c₂² = 1/(8π)
        printed = 4 * ridge * 0.5 * trace / (3 * D**2)
        lines.append([printed, printed * 3 / (2 + q0), ridge * y2 @ (R1 - R2) @ y2])
sphere, gaussian = np.reshape(lines, (trials, 2, 3)).transpose(1, 0, 2)
ratio = gaussian.mean(0) / sphere.mean(0)
error = np.std(gaussian[:, 2] / ratio[2] - sphere[:, 2], ddof=1) / trials**0.5 * ratio[2] / sphere[:, 2].mean()
print("Δ₂ - Δ₁ with Gaussian rows over that with rows of length one")
print(f"printed {ratio[0]:.3f}, corrected {ratio[1]:.3f}, simulated {ratio[2]:.3f} ± {error:.3f}")
