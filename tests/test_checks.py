import numpy as np
import pytest

from onestep import Problem, simulate, theory

SMALL = Problem(60, 20, 30)
HUGE = Problem(10**7, 3 * 10**6, 5 * 10**6)
LARGEST = Problem(10**300, 10**300, 10**300)


@pytest.mark.parametrize(
    "call",
    [
        lambda: simulate.draw(HUGE, simulate.key(0)),
        lambda: simulate.losses(HUGE, 1.0, trials=1),
        lambda: simulate.plateaus(HUGE, [1], trials=1),
        lambda: simulate.draw(LARGEST, simulate.key(0)),
        lambda: simulate.losses(LARGEST, 1.0, trials=1),
    ],
)
def test_sizes_beyond_memory_are_refused_before_anything_is_drawn(call):
    with pytest.raises(ValueError, match="not enough memory"):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate.losses(SMALL, 1.0, trials=2, test_size="5"), "test_size = '5': must be a whole number >= 1"),
        (lambda: simulate.losses(SMALL, 1.0, trials=2, redraws="4"), "redraws = '4': must be a whole number >= 1"),
        (lambda: theory.losses(SMALL, "3"), "eta = '3': must be a number"),
        (lambda: SMALL.replace(n=10**301), "n = 10{38}.*: must be a whole number >= 1 and <= 1e300"),
        (lambda: theory.best_linear(3), "p = 3: must be a Problem"),
        (lambda: theory.losses(SMALL, np.array([1.0 + 5j])), r"eta = array\(\[1\.\+5\.j\]\): must be a number"),
        (lambda: theory.learned(SMALL, 1.0, 100), "degree = 100: must be a whole number >= 0 and <= 99"),
        (lambda: simulate.losses(SMALL, 1.0, trials=2, degree=100), "degree = 100: .* and <= 99"),
        (
            lambda: simulate.plateaus(SMALL, [1], trials=2, growing_rows="no"),
            "growing_rows = .no.: must be True or",
        ),
        (lambda: theory.learned(SMALL, [[1, 2], [3]], 1), r"eta = \[\[1, 2\], \[3\]\]: must be a number or"),
        (lambda: simulate.plateaus(SMALL, [1], trials=2, redraws="4"), "redraws = '4': must be a whole number >= 1"),
        (lambda: simulate.data.Rows(10**400), "X: must be an array of real numbers, not int"),
        (lambda: simulate.svd.operator_norm(np.full((20, 15), np.nan)), r"A \(20, 15\): must be"),
        (lambda: simulate.draw(SMALL, 0), "rng = 0: must be a numpy Generator"),
        (lambda: simulate.draw(SMALL, simulate.key(0), data=np.eye(20)), "data: must be .*Rows.*, not ndarray"),
        (lambda: simulate.repeat(3, 2, 0), "replicate = 3: must be a function"),
        (lambda: simulate.key(0, 1.5), "branch = 1.5: must be a whole number >= 0"),
        (lambda: theory.losses(SMALL.replace(activation=lambda z: np.sin(6 * z)), 1.0), r"c_1 = 9\.1e-08, below"),
    ],
)
def test_errors_name_the_argument_its_value_and_what_is_allowed(call, message):
    with pytest.raises(ValueError, match=message):
        call()
