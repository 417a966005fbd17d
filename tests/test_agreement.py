"""Theory against simulation, for both first layers and both initial outputs; they share no code but `Problem`."""

import numpy as np
import pytest

from onestep import Problem, report, simulate, theory

BASE = Problem(600, 180, 300, ridge=0.03, teacher=(0.0, 1.0, 2**-0.5))


def limit(p, measure):
    """(estimate, s.e.) of a mean over 32 replicates, extrapolated from n/2 and n."""
    return report.extrapolated(*(measure(q) for q in (p.scaled(p.n // 2), p)))


@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
def test_limit_features_at_the_threshold_of_spike_two(layer):
    p = BASE.replace(first_layer=layer)
    first, edge = theory.gains(p, 1), theory.boundary(p, 2)
    losses = [simulate.plateaus(q, [1, 1.5], trials=250, seed=(12, q.n)) for q in (p.scaled(p.n // 2), p)]
    for name in ("train", "test"):
        value, error = report.extrapolated(*(-np.diff(getattr(loss, name), axis=1)[:, 0] for loss in losses))
        expected = getattr(edge, name) - getattr(first, name)
        assert abs(value - expected) < 3.5 * error < 0.5 * expected


@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
@pytest.mark.parametrize("output", ["negligible", "full"])
def test_limit_features_gain_what_the_plateaus_say(layer, output):
    p = BASE.replace(first_layer=layer, initial_output=output)

    def stairs(q, name):
        loss = getattr(simulate.plateaus(q, [0, 1, 2], trials=32, seed=(11, q.n)), name)
        return -np.diff(loss, axis=1)

    for name in ("train", "test"):
        samples = [stairs(q, name) for q in (p.scaled(p.n // 2), p)]
        first, second = (getattr(theory.gains(p, order), name) for order in (1, 2))
        for k, expected in enumerate((first, second - first)):
            value, error = report.extrapolated(samples[0][:, k], samples[1][:, k])
            assert abs(value - expected) < 3.5 * error
            assert error < 0.25 * expected


def test_the_other_initial_output_would_be_noticed():
    full, negligible = (theory.gains(BASE.replace(initial_output=o), 2).test for o in ("full", "negligible"))
    value, error = limit(BASE, lambda q: -np.diff(simulate.plateaus(q, [0, 2], trials=32, seed=(11, q.n)).test)[:, 0])
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

    value, error = limit(p, gap)
    assert abs(value) < 3.5 * error
    assert error < 0.25 * (theory.untrained(p).train - theory.losses(p, p.n**0.2, method="spiked").train)
