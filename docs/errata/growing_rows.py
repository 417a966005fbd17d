"""‖F - F₂‖/√n does not vanish: F₂ lacks the constant (c₁η)²c₂Dq 1(a∘a)ᵀ. Here σ = z + H₂/2, y = H₁ and η = n^.39."""

import numpy as np

rng = np.random.default_rng(1)
print("    n | column means of F - F₂ printed, corrected, measured | left of them with the constant in F₂")
for n in (250, 500, 1000, 2000):
    d, N, eta, found = n // 2, n // 2, n**0.39, []
    for _ in range(8000 // n):
        teacher, a = rng.standard_normal(d), rng.standard_normal(N) / N**0.5
        teacher /= np.linalg.norm(teacher)
        X, X2, W0 = (rng.standard_normal(size) for size in ((n, d), (n, d), (N, d)))
        W0 /= np.linalg.norm(W0, axis=1, keepdims=True)
        y = X @ teacher
        W = W0 + eta * a[:, None] * ((1 + X @ W0.T) * y[:, None]).T @ X / n  # c₁ = 1, c₂ = 1/2: σ'(z) = 1 + z
        z = X2 @ (X.T @ y / n)
        F0, F = ((X2 @ V.T) + ((X2 @ V.T) ** 2 - 1) / 2 for V in (W0, W))
        F2 = F0 + eta * np.outer(z, a) + eta**2 / 2 * np.outer(z**2, a**2)
        means, missing = (F - F2).mean(0), eta**2 / 4 * a**2  # Dq = φ E y² Var σ'/c₁² = 1/2
        found.append([np.linalg.norm(v) for v in (missing, means, means - missing)])
    corrected, measured, left = np.mean(found, axis=0)
    print(f"{n:5} | 0.000, {corrected:.3f}, {measured:.3f} | {left:.3f}")
