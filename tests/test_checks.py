import numpy as np
import pytest

from onestep import Problem, checks, hermite, simulate, theory
from onestep.multiindex import Target

SMALL = Problem(60, 20, 30)
HUGE = Problem(10**7, 3 * 10**6, 5 * 10**6)


def test_a_folder_is_made_or_refused(tmp_path):
    assert checks.folder("--save", tmp_path / "a/b").is_dir()
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ValueError, match=r"--save = .*file': cannot be written: File exists"):
        checks.folder("--save", tmp_path / "file")


@pytest.mark.parametrize(
    "call",
    [
        lambda: simulate.draw(HUGE, simulate.key(0)),
        lambda: simulate.losses(HUGE, 1.0, trials=1),
        lambda: simulate.plateaus(HUGE, [1], trials=1),
        lambda: simulate.random_features.path(HUGE, 0.1, trials=1),
        lambda: simulate.spectra.directions(HUGE, trials=1),
        lambda: simulate.spectra.gradients(HUGE, trials=1),
        lambda: simulate.spectra.weights(HUGE, 1.0, trials=1),
        lambda: simulate.spectra.weight_spectrum(HUGE, 1.0, trials=1),
        lambda: simulate.spectra.features(HUGE, 1.0, 2, trials=1),
        lambda: simulate.spectra.feature_spectrum(HUGE, 1.0, trials=1),
        lambda: simulate.expansion.sizes(HUGE, 1.0, 1, trials=1),
    ],
)
def test_sizes_beyond_memory_are_refused_before_anything_is_drawn(call):
    with pytest.raises(ValueError, match="not enough memory"):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.expansion.forms(SMALL.replace(initial_output="full"), 2), 'initial_output = "full"'),
        (lambda: theory.covariance.signs(SMALL.replace(activation=(0.0, 2.0)), np.ones(20)), "activation = .* linear"),
        (lambda: theory.spectra.weights(SMALL.replace(N=1)), "N = 1, d = 20: both must be at least 2"),
        (lambda: theory.spectra.weights(SMALL.replace(d=1), 2.0, step_noise="correlated"), "N = 30, d = 1: both"),
        (lambda: simulate.spectra.weights(SMALL.replace(d=1), 2.0, trials=2), "N = 30, d = 1: both must be at least 2"),
        (lambda: simulate.covariance.first_stair(SMALL, np.ones(20), []), r"steps = \[\]: must be one function"),
        (lambda: simulate.expansion.norms(SMALL, 1.0, [1], growth="yes"), "growth = .*yes.*: must be True or False"),
    ],
)
def test_errors_name_the_argument_its_value_and_what_is_allowed(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_scalar_number_of_samples_is_a_list_of_one():
    target = Target({(2,): 1.0})
    one, many = theory.directions.energy(target, 10, 50), theory.directions.energy(target, 10, [50])
    np.testing.assert_array_equal(one, many)


@pytest.mark.parametrize(
    "kept",
    [
        lambda: hermite.gauss_legendre(8)[0],
        lambda: theory.quadrature.coordinate(20, 4)[1],
        lambda: theory.staircase._inverse(3),
    ],
)
def test_arrays_that_are_handed_out_again_cannot_be_changed(kept):
    with pytest.raises(ValueError, match="read-only"):
        kept()[0] = 7.0
