"""How time and memory grow with n: one replicate on one core, in a process of its own, at fixed d/n and N/n."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from timing import seconds, timed

from onestep import Problem, simulate, theory

SIZES = (500, 1000, 2000, 4000, 8000, 16000)
HEAD = ["n", "losses at 3 step sizes", "its memory", "‖F - F_1‖ at one", "theory of 20 step sizes"]
PROBLEM = Problem(n=1000, d=300, N=500, teacher=(0.0, 1.0, 2**-0.5), noise=0.5)


def measure(n):
    """(seconds of the losses, GiB they add at their peak, seconds of an operator norm, seconds of theory) at one n."""
    p = PROBLEM.scaled(n)
    simulate.losses(PROBLEM.scaled(100), [1.0], trials=1, jobs=1)  # so that nothing is loaded within the times
    before = _memory("VmRSS")
    losses, _ = timed(lambda: simulate.losses(p, [0.0, n**0.25, n**0.5], trials=1, jobs=1))
    peak = _memory("VmHWM") - before
    norm, _ = timed(lambda: simulate.expansion.norms(p, n**0.2, [1], trials=1, jobs=1))
    curve, _ = timed(lambda: theory.losses(p, n ** np.linspace(0.0, 0.5, 20)))
    return losses, peak, norm, curve


def _memory(field):
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 2**20


def table(sizes=SIZES):
    """(head, body): a line for each size and one with the exponents of power laws fitted to them all."""
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        return HEAD, lines(sizes, np.array(list(pool.map(measure, sizes))))


def lines(sizes, found):
    """The table's body from the numbers (len(sizes), 4) of `measure`."""
    exponents = np.polyfit(np.log(sizes), np.log(np.maximum(found, 1e-9)), 1)[0].round(2) + 0.0  # no -0.00
    body = [
        [str(n), seconds(losses), f"{peak:.2f} GiB", seconds(norm), seconds(curve)]
        for n, (losses, peak, norm, curve) in zip(sizes, found, strict=True)
    ]
    return [*body, ["exponent", *(f"{value:.2f}" for value in exponents)]]
