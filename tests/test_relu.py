import numpy as np
import pytest

from onestep.relu import kernel


def plane_average(f, g, cosine):
    """E f(u) g(v) for positively homogeneous f, g and unit Gaussians u, v at a cosine: the radius integrates to 2."""
    t = (np.arange(400_000) + 0.5) * 2 * np.pi / 400_000
    return 2 * np.mean(f(np.cos(t)) * g(np.cos(t - np.arccos(cosine))))


@pytest.mark.parametrize("cosine", [-1.0, -0.6, 0.0, 0.2, 0.999, 1.0])
def test_kernel_against_the_integral_over_the_plane(cosine):
    w, v = np.array([[2.0, 0.0]]), 1.5 * np.array([[cosine, np.sqrt(1 - cosine**2)]])

    def relu(z):
        return np.maximum(z, 0)

    plain = 3 * plane_average(relu, relu, cosine)
    assert kernel(w, v, preprocess=False)[0, 0] == pytest.approx(plain, abs=1e-9)
    without = plain - 3 / (2 * np.pi) - 3 * cosine / 4  # E ReLU = 1/√(2π), E g ReLU = 1/2
    assert kernel(w, v)[0, 0] == pytest.approx(without, abs=1e-9)
