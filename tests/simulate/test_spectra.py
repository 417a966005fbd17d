import numpy as np
import pytest

from onestep import Problem, estimates, simulate

WIDE = Problem(120, 40, 70, noise=0.5)
TALL = Problem(120, 90, 50, noise=0.5)


@pytest.mark.parametrize("p", [WIDE, TALL])
@pytest.mark.parametrize("output", ["negligible", "full"])
def test_leading_vectors_of_weights_are_those_of_a_dense_decomposition(p, output):
    p, eta = p.replace(initial_output=output), np.array([0.5, 6.0])
    found = simulate.spectra.weights(p, eta, trials=3, seed=1)
    for trial in range(3):
        now = simulate.draw(p, simulate.key(1, trial))
        G, beta = simulate.gradient(p, now), simulate.direction(p, now)
        for j, step in enumerate(eta):
            left, values, right = np.linalg.svd(now.W0 + step * G)
            expected = [
                *values[:2],
                (left[:, 0] @ now.a) ** 2 / (now.a @ now.a),
                (right[0] @ beta) ** 2 / (beta @ beta),
            ]
            got = [getattr(found, name)[trial, j] for name in ("first", "second", "left", "right")]
            np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "output", "readout"),
    [
        ("sphere", "full", "gaussian"),
        ("gaussian", "negligible", "gaussian"),
        ("sphere", "negligible", [0.6, 1.64**0.5]),
    ],
)
def test_control_variates_have_mean_zero(layer, output, readout):
    p = WIDE.replace(first_layer=layer, initial_output=output, readout=readout)
    for run in (
        simulate.spectra.weights(p, [3.0], trials=250, seed=2),
        simulate.spectra.features(p, [3.0], 1, order=1, trials=250, seed=3),
        simulate.spectra.gradients(p, trials=250, seed=4),
    ):
        variates = estimates.mean(run.variates)
        assert np.all(np.abs(variates.value) < 4.5 * variates.se + 1e-12)


def test_control_variates_explain_most_of_a_spike():
    p = WIDE.replace(n=400, d=120, N=100)
    weights, features = (
        simulate.spectra.weights(p, [8.0], trials=120, seed=5),
        simulate.spectra.features(p, [8.0], 1, order=0, trials=120, seed=5),
    )
    for samples, variates in ((weights.first, weights.variates), (features.values, features.variates)):
        assert np.max(estimates.controlled(samples, variates).se) < 0.5 * np.max(estimates.mean(samples).se)
