"""The operator norm ‖F - F_1‖ against a dense singular value decomposition; the better of two times of either."""

import numpy as np
from timing import row, timed

from onestep import Problem, simulate

PROBLEM = Problem(n=4000, d=1200, N=2000, activation="softplus")


def rows(p=PROBLEM):
    """Lines under `timing.HEAD`."""
    eta = p.n**0.15
    now = simulate.draw(p, simulate.key(0, 0))
    base, move = now.X2 @ now.W0.T, now.X2 @ simulate.gradient(p, now).T
    difference = simulate.features(p, base, move, eta) - p.student(base)
    spike = (eta * p.student.linear**2 * (now.X2 @ (now.X.T @ now.y / p.n)))[:, None]
    operator = simulate.svd.deflated(difference, spike, now.a[:, None])
    ours, fast = timed(lambda: simulate.svd.operator_norm(operator), 2)
    theirs, slow = timed(lambda: np.linalg.norm(difference - spike * now.a, 2), 2)
    np.testing.assert_allclose(fast, slow, rtol=1e-8)
    what = f"‖F - F_1‖ to a relative residual of 1e-6, n = {p.n}, N = {p.N}"
    return [row(what, "all singular values", theirs, ours, "25 ×")]
