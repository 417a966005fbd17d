"""Control variates: statistics of a replicate whose means are known exactly, whatever n.

The losses of a replicate follow the length and the direction of its gradient, the power of its labels and the law of
its readout. What these explain of the spread can be regressed out of a mean (`estimates.controlled`).
"""

from __future__ import annotations

import numpy as np

from ..problem import Problem


def variates(p: Problem, draw, labels):
    """Statistics of a replicate less their means, (7,): of β = Xᵀy/n its squared length and its part along β⋆; of the
    second sample the power of its labels (n, k), whose k redraws of the noise count as one, and their products with H_1
    and H_2 of X̃β⋆; of the readout Σ a² and N Σ a⁴.
    """
    power, c = p.label_power, p.target.coefficients(2)
    beta, m = draw.X.T @ draw.y / len(draw.y), len(draw.y)
    z, weight = p.target.nodes()
    excess = weight @ (p.target(z) ** 2 * (z**2 - 1))  # E y²(z² - 1)
    ahead, mean = draw.X2 @ draw.beta_star, labels.mean(1)
    fourth = 3.0 if p.readout_values is None else np.mean(p.readout_values**4)
    return np.array(
        [
            beta @ beta - (p.d * power + excess) / m - (1 - 1 / m) * c[1] ** 2,
            beta @ draw.beta_star - c[1],
            np.mean(labels**2) - power,
            np.mean(mean * ahead) - c[1],
            np.mean(mean * (ahead**2 - 1)) - 2 * c[2],
            draw.a @ draw.a - 1,
            p.N * np.sum(draw.a**4) - fourth,
        ]
    )
