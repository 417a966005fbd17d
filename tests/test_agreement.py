"""Theory against simulation, for both first layers and both initial outputs; they share no code but `Problem`."""

import numpy as np
import pytest

from onestep import Problem, estimates, simulate, theory

BASE = Problem(600, 180, 300, ridge=0.03, teacher=(0.0, 1.0, 2**-0.5))


def limit(p, samples):
    """Value and standard error of a mean over replicates, extrapolated from n/2 and n.   samples : for each size."""
    found = estimates.limit(sizes(p), [estimates.mean(each) for each in samples])
    return found.value, found.se


def sizes(p):
    return [p.n // 2, p.n]


def plateaus(p, orders, trials, root, **options):
    """Simulated losses of the limit features at both sizes."""
    return [simulate.plateaus(p.scaled(n), orders, trials=trials, seed=(root, n), **options) for n in sizes(p)]


@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
@pytest.mark.parametrize("output", ["negligible", "full"])
def test_limit_features_gain_what_the_plateaus_say(layer, output):
    p = BASE.replace(first_layer=layer, initial_output=output)
    runs = plateaus(p, [0, 1, 2], 32, 11, redraws=16)
    for name in ("train", "test"):
        first, second = (getattr(theory.gains(p, order), name) for order in (1, 2))
        for k, expected in enumerate((first, second - first)):
            value, error = limit(p, [-np.diff(getattr(run, name), axis=1)[:, k] for run in runs])
            assert abs(value - expected) < 3.5 * error < 0.25 * expected


def test_the_networks_own_spikes_gain_what_growing_rows_leave():
    runs = [plateaus(BASE, [0, 2], 40, 13, redraws=2, growing_rows=grows) for grows in (False, True)]
    for name in ("train", "test"):
        F_2, network = (getattr(theory.gains(BASE, 2, growing_rows=grows), name) for grows in (False, True))
        found = [getattr(a, name)[:, 1] - getattr(b, name)[:, 1] for a, b in zip(*runs, strict=True)]
        value, error = limit(BASE, found)
        assert abs(value - (network - F_2)) < 3.5 * error < 0.5 * (F_2 - network)


def test_the_other_initial_output_would_be_noticed():
    full, negligible = (theory.gains(BASE.replace(initial_output=o), 2).test for o in ("full", "negligible"))
    value, error = limit(BASE, [run.drops.test[:, 0] for run in plateaus(BASE, [0, 2], 32, 11, redraws=16)])
    assert abs(value - negligible) < 3.5 * error < abs(value - full)


@pytest.mark.parametrize("output", ["negligible", "full"])
def test_a_real_step_follows_the_finite_n_curve(output):
    p = BASE.replace(initial_output=output, noise=0.5)

    def gap(q):
        eta = [0.0, q.n**0.2]
        simulated, predicted = (
            simulate.losses(q, eta, trials=32, seed=(12, q.n)).train,
            theory.losses(q, eta, method="spiked").train,
        )
        return (simulated[:, 0] - simulated[:, 1]) - (predicted[0] - predicted[1])

    value, error = limit(p, [gap(p.scaled(n)) for n in sizes(p)])
    assert abs(value) < 3.5 * error
    assert error < 0.25 * (theory.untrained_limit(p).train - theory.losses(p, p.n**0.2, method="spiked").train)
