"""What the losses of the fixed point must satisfy whatever a simulation says: symmetries, limits and bounds.

    python tests/theory/test_symmetries.py 1000 [invariant_formula]

tries every property, or the named one, on that many random problems and prints the largest violations.
"""

import dataclasses
import sys

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.optimize import root
from scipy.special import comb, eval_gegenbauer, roots_genlaguerre

from onestep import Problem, theory

pytestmark = pytest.mark.filterwarnings("ignore:activation")  # symmetries hold for cubics too
NAMES = ("shifted_relu", "softplus", "tanh", "erf", "tilted_sin")
ACTIVATIONS = (*NAMES, (0.0, 1.0, 0.4, 0.1))
DEGREES = 4


def random_problem(rng, least=20):
    """d from `least` to 300, n/d from 1 to d, N/n from .2 to 3; the activation of a network with c_1 ≠ 0."""
    d = round(np.exp(rng.uniform(np.log(least), np.log(300))))
    n = round(d * np.exp(rng.uniform(0, np.log(min(d, 30)))))
    N = max(10, round(n * np.exp(rng.uniform(np.log(0.2), np.log(3)))))
    ridge = 10 ** rng.uniform(-2, 0)
    activation = ACTIVATIONS[rng.integers(len(ACTIVATIONS))]
    teacher = (0.0, 1.0, *rng.uniform(-0.7, 0.7, 2))
    layer, output = ("sphere", "gaussian")[rng.integers(2)], ("negligible", "full")[rng.integers(2)]
    return Problem(n, d, N, ridge, activation, teacher, rng.uniform(0.1, 1), layer, output)


def turned(p, cosine):
    """The losses without a step when the first batch has another cosine with the teacher, at the same ‖β‖."""
    family = theory.fixed_point.family(p)
    batch = family.batch
    mean = np.zeros(batch.mean.size)
    mean[0] = cosine * np.sqrt(batch.D)
    batch = dataclasses.replace(batch, mean=mean, rest=batch.D * (1 - cosine**2))
    return dataclasses.replace(family, batch=batch).evaluate(0.0).losses


def harmonics(d):
    """Nodes and weights of a coordinate t of the unit sphere, and the zonal harmonics of degree 0 to 3 on them."""
    x, w = leggauss(300)
    t = np.concatenate([-(x + 1) / 2, (x + 1) / 2])
    w = np.tile(w, 2) * (1 - t**2) ** ((d - 3) / 2)
    w = w / w.sum()
    P = np.array([eval_gegenbauer(k, d / 2 - 1, t) for k in range(DEGREES)])
    return t, w, P / np.sqrt(P**2 @ w)[:, None]


def lengths(d):
    """Eight Gauss nodes of ‖x‖/√d, x ~ N(0, I_d): the law of lengths, exact to rounding for the activations here."""
    square, weight = roots_genlaguerre(8, d / 2 - 1)
    return np.sqrt(2 * square / d), weight / weight.sum()


def invariant(p):
    """L_tr and L_te without a step from nodes in ‖x‖ alone: degrees 0 to 3 on the sphere, one q, eq. (44).

    With one κ for all inputs, the case of Defilippis, Loureiro and Misiakiewicz (arXiv 2405.15699).
    """
    t, w, P = harmonics(p.d)
    chi, pz = lengths(p.d)
    D = np.array([comb(p.d + k - 1, k) - (comb(p.d + k - 3, k - 2) if k > 1 else 0) for k in range(DEGREES)])

    def split(f):
        values = np.array([f(np.sqrt(p.d) * c * t) for c in chi])
        m = P @ (w * values).T
        return m, values**2 @ w - np.sum(m**2, axis=0)

    (m, rest), (label, unseen) = split(p.student), split(p.target)

    def equations(state, weight):
        """log κ and log q from old, and L_tr; T_k is 1 less a matrix of rank one, as all units are alike."""
        kappa, q = np.exp(state[:-1]), np.exp(state[-1])
        g = pz * weight / (1 + weight * kappa)
        strength, second_moment, overlap = p.N / D * q, m**2 @ g, (m * label) @ g
        used = np.sum((strength / (1 + strength * second_moment))[:, None] * D[:, None] * m**2, axis=0)
        left = np.sum(second_moment / (1 + strength * second_moment))
        loss = np.sum(label**2 @ g - strength * overlap**2 / (1 + strength * second_moment)) + g @ (unseen + p.noise**2)
        return np.append(np.log((used + p.N * q * rest) / p.n), -np.log(p.ridge + rest @ g + left)), loss

    one, state, step = np.ones(chi.size), np.zeros(chi.size + 1), 1e-30j
    for _ in range(100):
        state = (state + equations(state, one)[0]) / 2
    state = root(lambda x: equations(x, one)[0] - x, state, tol=1e-13).x
    assert np.max(np.abs(equations(state, one)[0] - state)) < 1e-9, p
    weight = 1 + step * (1 + np.exp(state[:-1])) ** 2  # L_te is the derivative of L_tr in this direction, eq. (40)
    jacobian = np.array([equations(state + step * e, one)[0].imag for e in np.eye(state.size)]).T / step.imag
    forcing = equations(state, weight)[0].imag / step.imag
    response = np.linalg.solve(np.eye(state.size) - jacobian, forcing)
    found = equations(state + step * response, weight)[1]
    return np.array([found.real, found.imag / step.imag])


def relative(found, expected):
    found, expected = (np.array([x.train, x.test]) if hasattr(x, "train") else x for x in (found, expected))
    return float(np.max(np.abs(found / expected - 1)))


# Every property: a number that must stay below its bound; what is left at η = 0 are degrees beyond 3, of order 1/d.
def direction_of_the_first_batch(p, rng):
    """Without a step nothing depends on β̂."""
    return relative(turned(p, rng.uniform(0, 0.99)), turned(p, 0.5)), 0.2 / p.d


def invariant_formula(p, rng):
    """Without a step on the sphere, the losses are those of eq. (44).

    Both resolve the same degrees. What may be left is the error of the theory's quadrature of lengths: of order 1/d²
    for the two nodes that it has from a hundred inputs on, and less for the three below.
    """
    p = p.replace(first_layer="sphere", initial_output="negligible")
    return relative(theory.losses(p, 0.0), invariant(p)), 0.1 / p.d


def continuity(p, rng):
    """η → 0 is no step."""
    return relative(theory.losses(p, 1e-6), theory.losses(p, 0.0)), 1e-3


def initial_output_without_a_step(p, rng):
    """Without a step the initial output changes nothing, to the order of the numbers of inputs and of units."""
    full, none = (theory.losses(p.replace(initial_output=output), 0.0) for output in ("full", "negligible"))
    return relative(full, none), 0.5 / min(p.d, p.N)


def scale_of_the_activation(p, rng):
    """σ → tσ is λ → t²λ with the step η/t."""
    p, t = p.replace(initial_output="negligible"), 10 ** rng.uniform(-3, 3)
    c = p.student.coefficients(3)
    eta = rng.uniform(0, 0.5) * np.sqrt(p.n)
    one, two = (p.replace(activation=tuple(s * c), ridge=s * s * p.ridge) for s in (1.0, t))
    return relative(theory.losses(two, eta / t), theory.losses(one, eta)), 1e-9


def scale_of_the_labels(p, rng):
    """y → ty multiplies both losses by t² at the step η/t."""
    p, t = p.replace(initial_output="negligible"), 10 ** rng.uniform(-3, 3)
    eta = rng.uniform(0, 0.5) * np.sqrt(p.n)
    found = theory.losses(p.replace(teacher=tuple(t * np.array(p.teacher)), noise=t * p.noise), eta / t)
    return relative(np.array([found.train, found.test]) / t**2, theory.losses(p, eta)), 1e-9


def bounds(p, rng):
    """L_tr <= E y², as a = 0 may be chosen; L_te >= σ_ε²; and L_tr grows with λ."""
    eta = rng.uniform(0, 0.5) * np.sqrt(p.n)
    found, more = theory.losses(p, eta), theory.losses(p.replace(ridge=1.5 * p.ridge), eta)
    return float(max(found.train / p.label_power - 1, p.noise**2 / found.test - 1, found.train / more.train - 1)), 0.0


def parity(p, rng):
    """An odd activation and an odd teacher learn nothing even."""
    p = p.replace(activation="tanh", teacher=(0.0, 1.0, 0.0, rng.uniform(-0.5, 0.5)))
    b = theory.learned(p, rng.uniform(0, 0.5) * np.sqrt(p.n), 2)
    return abs(b[2] / b[1]), 1e-6


PROPERTIES = (
    direction_of_the_first_batch,
    invariant_formula,
    continuity,
    initial_output_without_a_step,
    scale_of_the_activation,
    scale_of_the_labels,
    bounds,
    parity,
)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("property_", PROPERTIES)
def test_property_holds_on_random_problems(property_, number):
    rng = np.random.default_rng([30, number])
    found, bound = property_(random_problem(rng), rng)
    assert found <= bound


@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("n", "d", "N"), [(60, 10, 40), (480, 24, 240), (600, 300, 400)])
def test_without_a_step_the_direction_of_the_first_batch_does_not_matter(n, d, N, activation, layer):
    p = Problem(n, d, N, 0.01, activation, (0.0, 1.0, 0.6), 0.1, layer)
    assert relative(turned(p, 0.05), turned(p, 0.95)) < 0.2 / d


def test_three_nodes_of_lengths_give_the_invariant_formula():
    """Two are 2.3 times the bound off here."""
    rng = np.random.default_rng([31, 198])
    found, bound = invariant_formula(random_problem(rng), rng)
    assert found < bound


def main(count, *names):
    for check in [check for check in PROPERTIES if not names or check.__name__ in names]:
        worst = []
        for number in range(count):
            rng = np.random.default_rng([31, number])
            p = random_problem(rng)
            try:
                found, bound = check(p, rng)
            except (ArithmeticError, ValueError) as error:
                print(f"  {number}: {error}"[:200])
                continue
            worst.append(found / max(bound, 1e-12))
            if found > bound:
                print(f"  {check.__name__} {number}: {found:.2g} over {bound:.2g}: {p}", flush=True)
        print(
            f"{check.__name__}: {np.mean(np.array(worst) <= 1):.1%} of {len(worst)}, worst {max(worst):.2g}", flush=True
        )


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
