import numpy as np
import pytest

from onestep import Problem, hermite, theory

P = Problem(1000, 300, 500)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 0}, "n = 0: must be a whole number"),
        ({"d": True}, "d = True"),
        ({"N": 10.5}, "N = 10.5"),
        ({"ridge": 0}, "ridge = 0: must be a finite number > 0"),
        ({"ridge": "0.1"}, "ridge = '0.1'"),
        ({"noise": -0.1}, "noise = -0.1: must be a finite number >= 0"),
        ({"noise": np.inf}, "noise = inf"),
        ({"noise": 1e200}, r"noise = 1e\+200: must be at most 1e150"),
        ({"activation": "ramp"}, "activation = 'ramp': unknown name; known are"),
        ({"activation": np.exp}, r"activation = .*subtract 1\.6487"),
        ({"teacher": (1.0, 1.0)}, "teacher = .*let the first coefficient be 0"),
        ({"teacher": (0.0, 0.0)}, "teacher = .*finite and positive"),
        ({"teacher": ("a", 1)}, "teacher = .*Hermite coefficients"),
        ({"activation": lambda z: np.maximum(z, 0)}, "activation = .*kink or a jump that is not stated"),
        ({"activation": hermite.Function(np.sign, kinks=(0.0,))}, "activation = .*jumps at 0, which a gradient step"),
        ({"activation": hermite.Function(np.tanh, np.cos)}, "activation = .*derivative is not that of f"),
        ({"activation": 7}, "activation = 7"),
        ({"first_layer": "orthogonal"}, "first_layer = 'orthogonal': must be one of sphere, gaussian"),
        ({"initial_output": None}, "initial_output = None: must be one of negligible, full"),
        *(({"readout": bad}, "readout = .*mean square 1") for bad in ("uniform", [3.0], [], [[1.0]], [np.nan], None)),
        ({"step_samples": 0}, "step_samples = 0: must be a whole number >= 1"),
        ({"lam": 1.0}, "unknown field lam"),
    ],
)
def test_every_field_is_checked(changes, message):
    with pytest.raises(ValueError, match=message):
        P.replace(**changes)


def test_readout_and_sample_of_the_step_are_facts_of_the_experiment():
    q = P.replace(readout=[1.0, -1.0], step_samples=500)
    assert (q.readout, q.first_samples, q.step_phi, q.phi) == ((1.0, -1.0), 500, 0.6, 0.3)
    assert q.readout_values.tolist() == [1.0, -1.0]
    assert (P.readout_values, P.first_samples, P.step_phi) == (None, 1000, 0.3)
    assert q.D == pytest.approx(1.6)
    assert q.scaled(2000).step_samples == 1000
    assert hash(q) == hash(P.replace(readout=(1.0, -1.0), step_samples=500))
    with pytest.raises(ValueError, match=r'readout = \(1.0, -1.0\), step_samples = 500: must be "gaussian" and None'):
        theory.gains(q, 2)
    with pytest.raises(ValueError, match="step_samples = 500"):
        theory.visible(q, 3.0)


def test_ratios_and_limits():
    assert (P.phi, P.psi) == (0.3, 0.6)
    noisy = P.replace(noise=1.0)
    assert noisy.D == pytest.approx(1.6)
    assert noisy.rho**2 == pytest.approx(0.625)
    full = noisy.replace(initial_output="full")
    assert full.rho**2 == pytest.approx(1 / (1.6 + 0.25 + 0.3 * full.student.second_moment))


@pytest.mark.parametrize("n", [1, 7, 2000, 10**24, 10**48])
def test_scaling_keeps_the_ratios_exactly(n):
    big = P.scaled(n)
    assert abs(10 * big.d - 3 * n) <= max(5, 10 * (n == 1))
    assert abs(2 * big.N - n) <= 2


def test_specifications_are_equivalent():
    by_list, by_array = P.replace(teacher=[0, 1, 0.5]), P.replace(teacher=np.array([0, 1, 0.5]))
    assert by_list == by_array
    assert hash(by_list) == hash(by_array)
    assert P.replace(teacher=lambda z: z + 0.5 * (z**2 - 1)).target.coefficients(2) == pytest.approx([0, 1, 0.5])
