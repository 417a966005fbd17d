"""Hidden units after the step: spike, length and their correlation, against the gradient of real networks."""

import dataclasses

import numpy as np
import pytest

from onestep import Problem, simulate, theory


def law_of_units(p, eta, step_noise="correlated", order=20):
    batch = theory.fixed_point.family(p, step_noise=step_noise, order=30).batch
    return batch, theory.fixed_point.units.units(p, eta, batch, step_noise, order, 0.5)


@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
@pytest.mark.parametrize("activation", ["shifted_relu", (0.0, 1.0, 0.4), "softplus"])
def test_weights_have_the_predicted_norm_and_spread(activation, layer):
    p = Problem(1200, 400, 4000, 0.01, activation, teacher=(0.0, 1.0, 0.5), noise=0.5, first_layer=layer)
    draw = simulate.draw(p, np.random.default_rng(3))
    beta = draw.X.T @ draw.y / p.n
    move = np.array([0.5, 2.0])[:, None]
    turned = (simulate.gradient(p, draw) - p.student.linear * np.outer(draw.a, beta)) / draw.a[:, None]
    norms = np.sum((draw.W0 + move[:, :, None] * turned) ** 2, axis=-1)
    batch = theory.fixed_point.first_batch.first_batch(p, 20)
    k2 = p.student.slope_second_moment - p.student.linear**2
    rr = 1 + move[:, 0] ** 2 * p.phi * p.label_power * k2
    np.testing.assert_allclose(norms.mean(1), rr, rtol=0.05)
    start, slope, _, spread = theory.fixed_point.units.lengths(p, batch, move[:, 0])
    expected = 2 / p.d * ((layer == "gaussian") * start**2 + spread) + slope**2 / p.d
    np.testing.assert_allclose(norms.var(1), expected, rtol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "activation"),
    [("gaussian", "tanh"), ("sphere", "shifted_relu"), ("sphere", "tilted_sin"), ("gaussian", (0.0, 1.0, 0.3, 0.15))],
)
def test_spike_and_length_vary_together_as_in_a_network(activation, layer):
    """With all readout weights equal, units differ by the two fluctuations alone."""
    p = Problem(2000, 250, 2000, 0.01, activation, (0.0, 1.0, 0.5), 0.3, layer)
    eta, found = 0.5 * np.sqrt(p.N), []
    for seed in range(8):
        draw = simulate.draw(p, np.random.default_rng(seed))
        slope = p.student.derivative(draw.X @ draw.W0.T)
        W = draw.W0 + eta / np.sqrt(p.N) * ((draw.y[:, None] * slope).T @ draw.X) / p.n
        hat = draw.X.T @ draw.y
        s = W @ (hat / np.linalg.norm(hat))
        rest = np.sum(W**2, axis=1) - s**2
        found.append([s.var(), rest.mean(), rest.var(), np.cov(s, rest)[0, 1]])
    _, units = law_of_units(p.replace(readout=[1.0]), eta)
    s, rest = units.spike - units.chance @ units.spike, units.length**2
    off = rest - units.chance @ rest
    predicted = np.array([units.chance @ column for column in (s**2, rest, off**2, s * off)])
    mean, se = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    np.testing.assert_allclose(mean[:3], predicted[:3], rtol=0.12)
    assert abs(mean[3] - predicted[3]) < 4 * se[3] + 0.1 * abs(predicted[3])
    if activation != "shifted_relu":  # c_3 ≠ 0 makes a correlation that can be seen
        assert abs(mean[3]) > 0.25 * np.sqrt(mean[0] * mean[2])


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["tilted_sin", (0.0, 1.0, 0.18, 0.24)])
def test_covariance_of_spike_and_length(activation):
    """Mean of r², its slope on s and the variance that is left, at one readout weight, over the theory's."""
    p = Problem(2000, 180, 600, 0.05, activation, (0.0, 1.0, 0.1, -0.2), 0.2)
    rng, eta, found = np.random.default_rng(5), 36.0, []

    def law(s, square, weight):
        s, off = s - weight @ s, square - weight @ square
        slope = weight @ (s * off) / (weight @ s**2)
        return weight @ square, slope, weight @ (off - slope * s) ** 2

    values = np.array([0.7, 1.5])
    for _ in range(24):
        now = simulate.draw(p, rng)
        W = rng.standard_normal((1000, p.d))
        W = W / np.linalg.norm(W, axis=1)[:, None]
        G, hat = (now.X.T @ (now.y[:, None] * p.student.derivative(now.X @ W.T))).T / p.n, now.X.T @ now.y
        for a in values / np.sqrt(p.N):
            moved = W + eta * a * G
            s = moved @ hat / np.linalg.norm(hat)
            found.append(law(s, np.sum(moved**2, axis=1) - s**2, np.full(len(W), 1 / len(W))))
    found = np.mean(np.reshape(found, (-1, 2, 3)), axis=0)
    for j, value in enumerate(values):
        units = law_of_units(p.replace(readout=[1.0]), eta * value)[1]
        mean, slope, left = found[j] / law(units.spike, units.length**2, units.chance)
        assert mean == pytest.approx(1, abs=0.03)
        assert slope == pytest.approx(1, abs=0.1)
        assert left == pytest.approx(1, abs=0.15), value


@pytest.mark.slow
def test_rows_are_correlated_with_their_length_along_the_step_of_the_step():
    """d Cov(‖ν‖², β̂ᵀν) of rows ν without their spike, to which the part of ν along Mβ̂ adds most here."""
    p = Problem(600, 300, 200, 0.05, "tilted_sin", "relu", 0.2)
    rng, move, found = np.random.default_rng(7), 1.5 * np.sqrt(p.n / p.label_power / p.N), []
    for _ in range(16):
        now = simulate.draw(p, rng)
        W = rng.standard_normal((4000, p.d))
        W /= np.linalg.norm(W, axis=1)[:, None]
        dot = p.student.derivative(now.X @ W.T) - p.student.linear
        W += move * (now.y[:, None] * dot).T @ now.X / p.n
        hat = now.X.T @ now.y
        found.append(p.d * np.cov(np.sum(W**2, axis=1), W @ hat / np.linalg.norm(hat))[0, 1])
    batch = theory.fixed_point.family(p, order=30).batch
    law = theory.fixed_point.units.rows(p, move * np.sqrt(p.N), batch, np.array([1 / np.sqrt(p.N)]), "correlated")
    assert law.covariance[0] * np.sqrt(law.along[0]) == pytest.approx(np.mean(found), rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
def test_lengths_without_the_coherent_scaling_of_rows(layer):
    """Of the slope of a row's squared length on its spike, what the stretch 6c_3 η a_i β·w_i alone makes."""
    p = Problem(2000, 250, 2000, 0.01, "tanh", (0.0, 1.0, 0.5), 0.3, layer)
    eta, stretch, found = 0.5 * np.sqrt(p.N), 6 * p.student.coefficients(3)[3], []
    for seed in range(8):
        draw = simulate.draw(p.replace(readout=[1.0]), np.random.default_rng(seed))
        G, beta = simulate.gradient(p, draw), simulate.direction(p, draw)
        hat = beta / np.linalg.norm(beta)
        for part in (0, stretch * (draw.a * (draw.W0 @ beta))[:, None] * draw.W0):
            W = draw.W0 + eta * (G - part)
            s = W @ hat
            found.append(np.cov(s, np.sum(W**2, axis=1) - s**2)[0, 1])
    change = np.diff(np.reshape(found, (-1, 2)), axis=1)[:, 0]
    expected = []
    for kind in ("correlated", "incoherent"):
        units = law_of_units(p.replace(readout=[1.0]), eta, kind)[1]
        expected.append(units.chance @ ((units.spike - units.chance @ units.spike) * units.length**2))
    assert change.mean() == pytest.approx(np.diff(expected)[0], rel=0.1)


def test_rows_are_coherent_only_where_c_3_is_not_zero():
    p = Problem(2000, 250, 4000)  # a ramp has c_3 = 0
    coherent, not_so = (law_of_units(p, 10.0, kind)[1] for kind in ("correlated", "incoherent"))
    np.testing.assert_allclose(coherent.length, not_so.length, rtol=1e-12)


def test_moments_of_the_law_do_not_depend_on_the_number_of_nodes():
    p = Problem(1000, 300, 500, 0.01, "tanh", (0.0, 1.0, 0.7), 0.5, "gaussian", "full")
    few = law_of_units(p, 15.0)[1]
    many = law_of_units(p, 15.0, order=60)[1]
    for units in (few, many):
        assert units.chance.sum() == pytest.approx(1.0)
        assert np.all(units.length > 0)
    for power in (1, 2):
        assert few.chance @ few.spike**power == pytest.approx(many.chance @ many.spike**power, rel=1e-3, abs=1e-9)
        assert few.chance @ few.length**power == pytest.approx(many.chance @ many.length**power, rel=1e-3)


def test_what_of_the_step_is_kept():
    p = Problem(1000, 300, 500, teacher=(0.0, 1.0, 2**-0.5))
    _, absent = law_of_units(p, 20.0, "absent")
    assert law_of_units(p, 0.0)[1].chance @ law_of_units(p, 0.0)[1].spike ** 2 == pytest.approx(1 / p.d)
    np.testing.assert_allclose(absent.mix[0], 1.0)
    np.testing.assert_array_equal(absent.mix[1:], 0.0)
    _, isotropic = law_of_units(p, 20.0, "isotropic")
    _, correlated = law_of_units(p, 20.0)
    np.testing.assert_allclose(isotropic.mix, absent.mix, atol=1e-12)
    mean = [u.chance @ u.length**2 for u in (absent, isotropic, correlated)]
    assert mean[1] > 1.02 * mean[0]
    assert mean[2] == pytest.approx(mean[1], rel=0.01)


@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
def test_a_fourth_coefficient_lets_lengths_follow_the_square_of_the_spike(layer):
    """‖ω‖² has 2 move (1/n)Σ y h(xᵀw), h(g) = g(σ'(g) - c_1), whose curvature in w is M E h'' by Stein's lemma."""
    p = Problem(8 * 10**6, 10**6, 10**7, 0.01, (0.0, 1.0, 0.0, 0.0, 0.12), (0.0, 1.0, 0.6), 0.3, layer)
    move = 0.4
    batch, units = law_of_units(p.replace(readout=[1.0]), move * np.sqrt(p.N))
    g, w = p.student.nodes()
    bend = move * (w @ (g * (p.student.derivative(g) - 1) * (g**2 - 1))) * batch.plane[1, 0, 0]
    s = units.spike - units.chance @ units.spike
    spread = units.chance @ s**2
    found = units.chance @ (np.log(units.length) * (s**2 / spread - 1))
    back = 1 / (spread * p.d)  # squared correlation of β̂ᵀω and β̂ᵀw
    expected = (bend - (layer == "sphere")) * back / p.d / (units.chance @ units.length**2)
    assert found == pytest.approx(expected, rel=1e-4)
    assert bend > 0.5


@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
def test_the_full_output_leaves_a_spike_and_rows_without_their_part_along_the_readout(layer):
    """Means of s and r² for the direction β + W0ᵀa/(ηc_1), with equal readout weights: all units have one law."""
    p, eta, found = Problem(900, 300, 150, noise=0.3, first_layer=layer, initial_output="full", readout=[1.0]), 3.0, []
    shift = 1 / (eta * p.student.linear)
    for seed in range(30):
        draw = simulate.draw(p, np.random.default_rng(seed))
        W, b = draw.W0 + eta * simulate.gradient(p, draw), simulate.direction(p, draw) + shift * draw.W0.T @ draw.a
        s = W @ b / np.linalg.norm(b)
        found.append([s.mean(), np.mean(np.sum(W**2, axis=1) - s**2)])
    batch = law_of_units(p, eta)[0].shifted(shift)
    units = theory.fixed_point.units.units(p, eta, batch, "correlated", 20, 0.5)
    error = np.std(found, axis=0, ddof=1) / np.sqrt(30)
    predicted = np.array([units.chance @ units.spike, units.chance @ units.length**2])
    assert np.all(np.abs(np.mean(found, axis=0) - predicted) < 4 * error + [1e-3, 5e-4])
    assert error[1] < 1 / p.N / 4  # what a row loses, 1/N, is seen


@pytest.mark.parametrize(
    ("layer", "activation"), [("sphere", "shifted_relu"), ("sphere", "tanh"), ("gaussian", (0.0, 1.0, 0.0, 0.15))]
)
def test_with_the_full_output_lengths_follow_the_direction_of_the_readout(layer, activation):
    """d times the covariance of ‖ω‖² with ω along the part of e_1 across β̂, which makes Y_1 of eq. (30)."""
    p = Problem(1500, 100, 200, 0.1, activation, (0.0, 1.0), 0.0, layer, "full", readout=[1.0, -1.0])
    eta, found = 2.0, []
    shift = 1 / (eta * p.student.linear)
    for seed in range(100):
        draw = simulate.draw(p, np.random.default_rng(seed))
        W, e_1 = draw.W0 + eta * simulate.gradient(p, draw), draw.W0.T @ draw.a
        b = simulate.direction(p, draw) + shift * e_1
        hat = b / np.linalg.norm(b)
        across = e_1 - (e_1 @ hat) * hat
        length = np.sum(W**2, axis=1) - (W @ hat) ** 2
        found.append(p.d * np.mean(np.sign(draw.a) * (W @ across) * (length - length.mean())) / (across @ across))
    batch = law_of_units(p, eta)[0].shifted(shift)
    law = theory.fixed_point.units.rows(p, eta, batch, np.array([p.N**-0.5]), "correlated")
    predicted, error = law.length_slope[1, 0] * np.sqrt(2) * law.square[0] ** 1.5, np.std(found, ddof=1) / 10
    assert abs(np.mean(found) - predicted) < 4 * error + 0.05 * abs(predicted)
    assert error < abs(predicted) / 15


@pytest.mark.parametrize(("activation", "sign"), [("shifted_relu", -1), ((0.0, 1.0, 0.4), -1), ("tanh", 1)])
def test_a_unit_s_own_output_changes_its_length(activation, sign):
    """To first order in the step: by what the gradient has along a row, less β's part."""
    p, found = Problem(2000, 200, 100, activation=activation, initial_output="full"), []
    for seed in range(30):
        draw = simulate.draw(p, np.random.default_rng(seed))
        rest = simulate.gradient(p, draw) - p.student.linear * np.outer(draw.a, simulate.direction(p, draw))
        found.append(np.sum(draw.W0 * rest) / np.sum(draw.a**2))
    batch, eta, a = law_of_units(p, 0.0)[0], 1e-4, np.array([-0.1, 0.1])
    square = theory.fixed_point.units.rows(p, eta, batch, a, "correlated").square
    predicted, error = (square.mean() - 1) / (2 * eta * 0.1**2), np.std(found, ddof=1) / np.sqrt(30)
    assert abs(np.mean(found) - predicted) < 4 * error and sign * predicted > 8 * error


@pytest.mark.parametrize("kind", ["isotropic", "correlated"])
def test_rows_grow_by_the_rest_of_the_gradient(kind):
    p = Problem(10**8, 3 * 10**7, 5 * 10**7, 0.01, "softplus", (0.0, 1.0, 0.7), 0.5)
    _, units = law_of_units(p, 1.5 * np.sqrt(p.N), kind)
    assert units.chance @ units.length**2 == pytest.approx(1 + 1.5**2 * p.row_growth, rel=1e-4)
    assert 1.5**2 * p.row_growth > 0.02


@pytest.mark.slow
@pytest.mark.parametrize(("layer", "activation"), [("gaussian", "tilted_sin"), ("sphere", (0.0, 1.0, 0.3, 0.1, 0.05))])
def test_means_over_units_to_the_next_order_in_1_over_d(activation, layer):
    """What is left of s after the spike, and r², as they lean on the readout weight: all of it of order 1/d."""
    p = Problem(600, 40, 1500, 0.01, activation, (0.0, 1.0, 0.5, 0.2), 0.3, layer)
    eta, found = 0.6 * np.sqrt(p.N), []
    units = law_of_units(p, eta)[1]
    for seed in range(100):
        draw = simulate.draw(p, np.random.default_rng(seed))
        W, a = draw.W0 + eta * simulate.gradient(p, draw), np.sqrt(p.N) * draw.a
        length = np.sum(draw.X**2, axis=1) / p.d - 1
        c1, _, c3 = p.student.coefficients(3)[1:]
        spike = draw.X.T @ (draw.y * (c1 + 3 * c3 * length)) / p.n
        s = W @ (spike / np.linalg.norm(spike))
        left = s - 0.6 * a * np.linalg.norm(spike)
        square = np.sum(W**2, axis=1) - s**2
        found.append([np.mean(left * a), np.mean(square), np.mean(square * a)])
    a = units.overlap * np.sqrt(p.N)  # times r, which the next line takes out
    a = a * np.sqrt(np.mean(1 / units.mix[0]))
    mean, se = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    predicted = [0.0, units.chance @ units.length**2, units.chance @ (units.length**2 * a)]
    assert np.all(np.abs(mean - predicted) < 4 * se + [2e-3, 2e-3, 2e-3]), (mean, predicted, se)


@pytest.mark.slow
def test_units_of_one_readout_share_a_quadratic_form():
    """Products between two readouts of the mean harmonics of degree 2 of their rows, on drawn batches, eq. (38)."""
    p = Problem(300, 30, 200, 0.05, "softplus", (0.0, 1.0), 0.5, readout=[1.4, -0.2])
    rng, eta, k, found = np.random.default_rng(2), 25.0, p.d - 1, []
    for _ in range(24):
        now = simulate.draw(p, rng)
        beta = simulate.direction(p, now)
        across = np.linalg.svd(beta[None])[2][1:]  # an orthonormal basis of what is orthogonal to β
        W = rng.standard_normal((10_000, p.d))
        W /= np.linalg.norm(W, axis=1)[:, None]
        slope = p.student.derivative(now.X @ W.T) * now.y[:, None]
        means = []
        for a in p.readout_values:
            rows = (W + eta * a / np.sqrt(p.N) * (slope.T @ now.X) / p.n) @ across.T
            rows /= np.linalg.norm(rows, axis=1)[:, None]
            means.append(rows.T @ rows / len(rows) - np.eye(k) / k)  # noise: 1/len(rows) in the squares alone
        forms = np.array([[np.sum(x * y) for x in means] for y in means]) - (1 - 1 / k) / len(W)
        found.append(forms * (k * (k + 2) / 2) / theory.quadrature.dimensions(float(k))[2])
    batch, units = law_of_units(p, eta)
    predicted = (units.mix.T @ batch.products @ units.mix * (k / (k + 2) / p.d))[:2, :2]
    mean, se = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(mean - predicted) < 4 * se + 0.1 * np.abs(predicted)), (mean, predicted, se)
    assert predicted[0, 0] > 12 * se[0, 0] and predicted[0, 1] < -8 * se[0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["shifted_relu", "softplus"])
def test_rows_stretch_by_the_mean_label_of_their_first_batch(activation):
    """Slope of units' mean m_0, at one readout, on the mean label, eq. (38)."""
    p = Problem(400, 60, 200, 0.05, activation, (0.0, 1.0), 0.5, readout=[1.0])
    rng, eta, found = np.random.default_rng(4), 20.0, []
    for _ in range(30):
        now = simulate.draw(p, rng)
        for level in (-0.2, 0.2):
            moved = dataclasses.replace(now, y=now.y - now.y.mean() + level)
            W = now.W0 + eta * simulate.gradient(p, moved)
            x = np.sqrt(p.d - 1) * rng.standard_normal((4000, p.d))
            beta = now.X.T @ (now.y - now.y.mean())
            x -= np.outer(x @ beta, beta) / (beta @ beta)
            x *= np.sqrt(p.d - 1) / np.linalg.norm(x, axis=1)[:, None]  # z = 0, χ = 1
            found.append(np.mean(p.student(x @ W.T)))
    slope = np.diff(np.reshape(found, (-1, 2)), axis=1)[:, 0] / 0.4
    units = law_of_units(p, eta)[1]
    m_2 = theory.quadrature.expand(p.student, 0 * units.length, units.length, p.d - 1)[0][2]
    predicted = units.chance @ (m_2 * units.mix[1]) / np.sqrt(2)
    assert np.mean(slope) == pytest.approx(predicted, rel=0.05, abs=4 * np.std(slope) / np.sqrt(len(slope)))
    assert predicted > 10 * np.std(slope) / np.sqrt(len(slope))


@pytest.mark.slow
def test_degree_0_and_degree_1_covary_by_length():
    """The length's term of eq. (30) along ζ, on drawn rows at a large readout weight, where it is the largest.

    Its other term, and that in ∂m_1/∂s, are taken from the kernel, with the M and C of the drawn batch.
    """
    p = Problem(1200, 160, 600, 0.05, "tilted_sin", (0.0, 1.0, 0.4), 0.3)
    rng, move, z, found = np.random.default_rng(6), 36.0 / np.sqrt(p.N), np.array([-1.5, -0.5, 0.7, 1.6]), []
    c, xi, weight = p.student.coefficients(3), *theory.quadrature.gauss_hermite(40)
    t, slope_2 = 2 * c[2] * move, p.student.slope_second_moment - c[1] ** 2 - 4 * c[2] ** 2
    batch = theory.fixed_point.family(p, order=30).batch
    slope = theory.fixed_point.units.lengths(p, batch, np.array([move]))[1, 0]  # ϱ, eq. (15)
    for _ in range(8):
        now, W = simulate.draw(p, rng), rng.standard_normal((4000, p.d))
        W /= np.linalg.norm(W, axis=1)[:, None]
        hat, e_0 = now.X.T @ now.y / np.linalg.norm(now.X.T @ now.y), now.beta_star
        zeta = (e_0 - e_0 @ hat * hat) / np.linalg.norm(e_0 - e_0 @ hat * hat)
        pull = now.X @ W.T
        rows = np.vstack([s * W + move * (p.student.derivative(s * pull).T * now.y) @ now.X / p.n for s in (1, -1)])
        s = rows @ hat
        r = np.sqrt(np.sum(rows**2, axis=1) - s**2)
        values = p.student(s[:, None, None] * z[:, None] + r[:, None, None] * xi)
        m = [values @ (weight * P) for P in (1, xi, (xi**2 - 1) / np.sqrt(2))]
        along = rows @ zeta / r
        kernel = p.d * (m[0] * (along - along.mean())[:, None]).T @ m[1] / len(rows)
        M_hat, square = now.X.T @ (now.y * (now.X @ hat)) / p.n, np.mean(r**2) + np.var(s)
        C_hat = now.X.T @ (now.y**2 * (now.X @ hat)) / p.n
        M_M = now.X.T @ (now.y * (now.X @ M_hat)) / p.n
        Sigma = zeta @ (2 * t * M_hat + t**2 * M_M + move**2 * p.phi * slope_2 * C_hat) / square
        one, two, three = [x.T @ y / len(rows) for x, y in ((m[1], m[1]), (m[2], m[1]), (m[0], m[2]))]
        length = slope * t * (zeta @ M_hat) / np.sqrt(2) / square**1.5 * two
        found.append([kernel - Sigma * (z[:, None] * one + np.sqrt(2) * z * three), length])
    rest, expected = np.mean(found, axis=0)
    se = np.std(np.array(found)[:, 0] - np.array(found)[:, 1], axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(rest - expected) < 4 * se + 0.15 * np.abs(expected).max())
    assert np.abs(expected).max() > 8 * se[np.unravel_index(np.abs(expected).argmax(), se.shape)]


@pytest.mark.parametrize("d", [10, 40, 300])
def test_coordinates_of_rows_have_the_moments_of_the_sphere_that_degree_3_needs(d):
    _, units = law_of_units(Problem(4 * d, d, 4 * d), 0.0)
    second, fourth, sixth = (units.chance @ (units.spike**2 * d) ** k for k in (1, 2, 3))
    assert second == pytest.approx(1)
    assert fourth == pytest.approx(3 * d / (d + 2))
    assert sixth == pytest.approx(15 * d**2 / ((d + 2) * (d + 4)))  # of P_3²


def test_lengths_stay_positive_at_few_inputs_after_a_large_step():
    p = Problem(39, 26, 27, 0.125, "tilted_sin", (0.0, 1.0, 0.6, 0.67), 0.34)
    _, units = law_of_units(p, 3 * np.sqrt(p.n))
    assert np.all(units.length > 0)
    assert theory.losses(p, 1.0).test > p.noise**2
