"""F₀ is not c₁X̃W₀ᵀ + c_{>1}Z in the form of F₀(a∘a)/‖a∘a‖: all units share c₂(‖x‖² - d)/d. Shifted ReLU, λ = .01."""

import numpy as np

n, d, N, ridge, trials = 500, 150, 250, 0.01, 40
rng, lines = np.random.default_rng(1), []
c2, tail = 1 / (8 * np.pi) ** 0.5, 0.25 - 1 / (2 * np.pi)  # c₁ = 1/2, and c_{>1}²
for _ in range(trials):
    X2, W0, Z, a = (rng.standard_normal(size) for size in ((n, d), (N, d), (n, N), N))
    W0 /= np.linalg.norm(W0, axis=1, keepdims=True)
    F0 = np.maximum(X2 @ W0.T, 0) - (2 * np.pi) ** -0.5
    u, forms = a**2 / np.linalg.norm(a**2), []
    for F in (0.5 * X2 @ W0.T + tail**0.5 * Z, F0):
        R, v = np.linalg.inv(F @ F.T + ridge * n * np.eye(n)), F @ u
        forms.append(v @ R @ v)
    tau = n / N * (1 - ridge * np.trace(R))
    common, share = np.trace(R) * (1 - tau) * 2 * c2**2 * N / d, u.sum() ** 2 / N  # share of u along 1/√N: a third
    lines.append([forms[0], tau, tau + share * (1 - tau) * common / (1 + common), forms[1]])
for name, values in zip(("Gaussian features", "printed", "corrected", "simulated"), np.transpose(lines), strict=True):
    print(f"{name:17} {values.mean():.4f} ± {values.std(ddof=1) / trials**0.5:.4f}")
