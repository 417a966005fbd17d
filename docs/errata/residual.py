"""The gradient is c₁aβᵀ with β = Xᵀ(y - f₀)/n, not Xᵀy/n, for the printed first output f₀ = σ(XW₀ᵀ)a. Setting 1."""

import numpy as np

rng = np.random.default_rng(1)
print("    n | ‖G - c₁aβᵀ‖/‖G‖ printed, corrected | cos(β, β⋆) printed, corrected, measured along G")
for n in (500, 1000, 2000):
    d, N, found = 3 * n // 10, n // 2, []
    for _ in range(6000 // n):
        teacher, a = rng.standard_normal(d) / d**0.5, rng.standard_normal(N) / N**0.5
        X, W0 = rng.standard_normal((n, d)), rng.standard_normal((N, d)) / d**0.5
        y = X @ teacher + rng.standard_normal(n)
        residual = y - (np.maximum(X @ W0.T, 0) - (2 * np.pi) ** -0.5) @ a
        G = a[:, None] * ((X @ W0.T > 0) * residual[:, None]).T @ X / n
        gap = [np.linalg.norm(G - 0.5 * np.outer(a, r @ X / n), 2) / np.linalg.norm(G, 2) for r in (y, residual)]
        along = a @ G  # the direction in which the first layer moves
        found.append([*gap, along @ teacher / np.linalg.norm(along) / np.linalg.norm(teacher)])
    first, second, cosine = np.mean(found, axis=0)
    printed, corrected = (1 + 0.3 * 2) ** -0.5, (1 + 0.25 + 0.3 * (2 + 0.5 - 0.5 / np.pi)) ** -0.5
    print(f"{n:5} | {first:.3f}, {second:.3f} | {printed:.3f}, {corrected:.3f}, {cosine:.3f}")
