"""The equivalent Gaussian features: every formula against brute force on explicit draws and matrices."""

import dataclasses

import numpy as np
import pytest

from onestep import Problem, simulate, theory

P1 = Problem(1000, 300, 500, noise=1.0)
P2 = Problem(1000, 300, 500, teacher=(0.0, 1.0, 2**-0.5))


@pytest.fixture(scope="module")
def one_batch():
    """A model solved at a large step, and one first batch of the same ratios with its own M and C.

    With σ of degree 3 the features' linear parts span three modes, so the resolvent fits in a 3d × 3d matrix.
    """
    p = Problem(1300, 800, 720, 0.05, (0.0, 1.0, 0.6, 0.1), teacher=(0.0, 1.0, 0.8), noise=0.3)
    draw = simulate.draw(p, np.random.default_rng(11))
    draw = dataclasses.replace(draw, y=draw.y - draw.y.mean())
    M = (draw.X.T * draw.y) @ draw.X / p.n
    C = (draw.X.T * draw.y**2) @ draw.X / p.n
    s = draw.X @ draw.beta_star
    weight = np.full(p.n, 1 / p.n)
    law = theory.equivalent.FirstBatch(p.phi, draw.y, weight, (weight * s)[None], (weight * s**2)[None, None])
    f = theory.equivalent.features(p, 0.5 * np.sqrt(p.n), law, None, "correlated", 18)
    state, _ = theory.every_step.iterate(f)
    now = f.solution(state)
    at = theory.equivalent.pencil(f, now, 1.0)
    c, units = f.modes.c, f.units
    mats = [p.N / p.d * (c.T * (w * units.chance * now.q)) @ c for w in units.mix]
    parts = [np.eye(p.d), M, M @ M, C]
    L = np.kron(at.gamma_inv, np.eye(p.d)) + sum(np.kron(a, part) for a, part in zip(mats, parts, strict=True))
    return f, state, draw, parts, np.linalg.inv(L).reshape(3, p.d, 3, p.d)


def test_map_against_an_explicit_first_batch(one_batch):
    f, state, _, parts, inverse = one_batch
    p, c, rows, units = f.p, f.modes.c, f.modes.rows, f.units
    assert c.shape[1] == 3
    now, new = f.solution(state), f.solution(theory.equivalent.update(f, state, 1.0))
    g = f.pz / (1 + now.kappa)
    traces = [np.einsum("ixjy,yx->ij", inverse, part) / p.d for part in parts]
    seen = sum(w * np.einsum("ui,ij,uj->u", c, t, c) for w, t in zip(units.mix, traces, strict=True))
    for w, t in zip(units.mix, traces, strict=True):  # each of the four terms matters at this accuracy
        share = np.abs(w * np.einsum("ui,ij,uj->u", c, t, c)).max() / seen.max()
        assert share > 0.03
    np.testing.assert_allclose(1 / new.q, p.ridge + f.mu2sq @ g + seen, rtol=0.003)
    gamma = (rows.T * g) @ rows
    T = np.linalg.inv(gamma) - np.linalg.solve(gamma, np.linalg.solve(gamma, traces[0]).T).T
    linear = np.einsum("zi,ij,zj->z", rows, T, rows)
    expected = (p.N * (units.chance * now.q) @ f.mu2sq + p.d * linear) / p.n
    np.testing.assert_allclose(new.kappa, expected, rtol=0.003)


def test_directions_against_an_explicit_first_batch(one_batch):
    f, state, draw, _, inverse = one_batch
    at = theory.equivalent.pencil(f, f.solution(state), 1.0)
    g, p = at.g, f.p
    beta = draw.X.T @ draw.y / p.n
    beta /= np.linalg.norm(beta)
    basis = (f.modes.rows * np.sqrt(g)[:, None]) @ at.gamma_inv
    gamma = np.linalg.inv(at.gamma_inv)

    def T(v, w):
        form = np.einsum("ixjy,x,y->ij", inverse, v, w)
        return (v @ w) * np.eye(g.size) - basis @ ((v @ w) * gamma - form) @ basis.T

    bb, sb, ss = T(beta, beta), T(draw.beta_star, beta), T(draw.beta_star, draw.beta_star)
    found = theory.equivalent.directions(f, at)
    np.testing.assert_allclose(np.linalg.inv(found.inverse), bb, atol=0.01)
    np.testing.assert_allclose(found.seen[0][0], ss - sb @ np.linalg.inv(bb) @ sb.T, atol=0.02)
    cosine = beta @ draw.beta_star
    np.testing.assert_allclose(found.leak[0], cosine * np.eye(g.size) - np.linalg.inv(bb) @ sb.T, atol=0.002)
    assert np.abs(found.leak[0]).max() > 0.008
    trace = np.einsum("ixjx->ij", inverse) / p.d
    np.testing.assert_allclose(found.generic, np.eye(g.size) - basis @ (gamma - trace) @ basis.T, atol=0.01)
    assert np.abs(np.linalg.inv(found.inverse) - found.generic).max() > 0.05  # β̂ is no generic direction


@pytest.mark.parametrize("layer", ["sphere", "gaussian"])
@pytest.mark.parametrize("activation", ["shifted_relu", (0.0, 1.0, 0.4), "softplus"])
def test_units_weights_have_the_predicted_norm_and_spread(activation, layer):
    p = Problem(1200, 400, 4000, 0.01, activation, teacher=(0.0, 1.0, 0.5), noise=0.5, first_layer=layer)
    draw = simulate.draw(p, np.random.default_rng(3))
    beta = draw.X.T @ draw.y / p.n
    move = np.array([0.5, 2.0])[:, None]
    turned = (simulate.gradient(p, draw) - p.student.linear * np.outer(draw.a, beta)) / draw.a[:, None]
    norms = np.sum((draw.W0 + move[:, :, None] * turned) ** 2, axis=-1)
    batch = theory.equivalent.first_batch(p, p.phi, 20)
    k2 = p.student.slope_second_moment - p.student.linear**2
    rr = 1 + move[:, 0] ** 2 * p.phi * p.label_power * k2
    np.testing.assert_allclose(norms.mean(1), rr, rtol=0.05)
    expected = 2 / p.d * theory.equivalent.norm_spread(p, batch, move[:, 0])
    np.testing.assert_allclose(norms.var(1), expected, rtol=0.15)


@pytest.mark.parametrize("output", ["negligible", "full"])
def test_test_error_is_the_derivative_of_the_training_loss(output):
    p = P2.replace(noise=0.5, initial_output=output)
    eta = 15.0
    family = theory.every_step.family(p, order=18)
    f = family.features(eta)
    x, _ = family.solve(f, eta)
    sway, h = (1 + f.solution(x).kappa) ** 2, 1e-5

    def at(omega):
        y = x
        for _ in range(200):
            y = (y + theory.equivalent.update(f, y, omega)) / 2
        return theory.equivalent.training_loss(f, y, omega)

    slope = (at(1 + h * sway) - at(1 - h * sway)) / (2 * h)
    assert theory.every_step.losses_at(f, x)[1] == pytest.approx(slope, rel=1e-6)


def test_a_step_without_noise_keeps_the_weights_covariance():
    units = theory.every_step.family(P2, step_noise="absent").features(20.0).units
    np.testing.assert_array_equal(units.mix[0], 1.0)
    np.testing.assert_array_equal(units.mix[1:], 0.0)
    assert np.all(units.norm_spread == 0)
    quiet, loud = (theory.every_step.uniform(P1, 25.0, step_noise=kind).test for kind in ("absent", "isotropic"))
    assert quiet < loud


def test_first_batch_carries_the_law_of_residuals():
    p = Problem(600, 300, 400, 0.05, "softplus", (0.0, 1.0, 0.6), 0.3, initial_output="full")
    law = theory.equivalent.first_batch(p, p.phi, 40)
    np.testing.assert_allclose(law.pair.sum(-1), np.eye(2), atol=1e-10)
    np.testing.assert_allclose(law.along.sum(-1), 0, atol=1e-10)
    np.testing.assert_allclose(law.mean, [1.0, -p.student.linear], atol=1e-10)
    assert law.D == pytest.approx(p.D)
    rng = np.random.default_rng(0)
    s, own, rest = rng.standard_normal((3, 400_000))
    noise = np.sqrt(p.student.tail + p.noise**2) * rest
    y = p.target(s) - p.student.linear * own + noise
    for a, first in enumerate((s, own)):
        assert law.along[a] @ law.y**3 == pytest.approx(np.mean(first * y**3), abs=0.3)
        for b, second in enumerate((s, own)):
            drawn = np.mean(first * second * np.cos(y / 2))
            assert np.sum(law.pair[a, b] * np.cos(law.y / 2)) == pytest.approx(drawn, abs=0.01)


@pytest.mark.parametrize("output", ["negligible", "full"])
def test_loss_is_the_solution_of_the_whole_linear_problem(output, monkeypatch):
    """With a small explicit input space in place of T's equivalents, the block elimination is an identity."""
    p = P2.replace(initial_output=output, noise=0.2, first_layer="gaussian")
    f = theory.every_step.family(p, order=8).features(20.0)
    state = f.start()
    now = f.solution(state)
    g, Z, dims = f.pz / (1 + now.kappa), f.z.size, 4
    half = np.random.default_rng(1).standard_normal((dims * Z, 60)) / 8
    B = half @ half.T
    b, ends = np.eye(dims)[0], f.batch.cosine
    zeta = np.eye(dims)[1]
    e0 = ends[0] * b + f.away * zeta
    vectors = [e0]
    if output == "full":
        side = -ends[0] * ends[1] / f.away
        vectors.append(ends[1] * b + side * zeta + np.sqrt(1 - ends[1] ** 2 - side**2) * np.eye(dims)[2])
    known = explicit_directions(np.linalg.inv(np.eye(dims * Z) + B), b, vectors, Z)
    monkeypatch.setattr(theory.equivalent, "directions", lambda *_: known)

    root, share = np.sqrt(g), f.units.chance * now.q
    strength = np.sqrt(p.N * share)
    whole = np.block(
        [
            [np.eye(Z) + f.z[:, None] * B[:Z, :Z] * f.z, f.z[:, None] * B[:Z, Z:]],
            [B[Z:, :Z] * f.z, np.eye((dims - 1) * Z) + B[Z:, Z:]],
        ]
    )
    bend = f.bend * root
    whole[:Z, :Z] += 2 * p.N / p.d * (bend.T * (share * f.units.norm_spread)) @ bend
    columns = np.zeros((dims * Z, share.size))
    columns[:Z] = (f.mu0 * root).T * strength
    if output == "full":
        start = ((f.modes.c @ f.modes.rows.T) * root).T * (strength * f.units.overlap)
        columns[Z:] = np.kron(vectors[1][1:, None], start)
    label = np.kron(zeta, root * f.h1)
    label[:Z] = root * f.h0
    swell = np.sqrt(share)[:, None] * f.units.rr[:, None] * bend
    metric = np.linalg.inv(np.eye(share.size) + 2 * p.N / p.d * swell @ swell.T)
    expected = g @ f.unseen + label @ np.linalg.solve(whole + columns @ metric @ columns.T, label)
    assert theory.equivalent.training_loss(f, state, 1.0) == pytest.approx(expected, rel=1e-9)


def explicit_directions(inverse, b, vectors, Z):
    """What `theory.equivalent.directions` returns, from the linear problem's inverse (dims Z, dims Z); b is β̂."""

    def between(v, w):
        return np.kron(v, np.eye(Z)) @ inverse @ np.kron(w, np.eye(Z)).T

    back = np.linalg.inv(between(b, b))
    cross = [between(e, b) for e in vectors]
    seen = [
        [between(e, f) - x @ back @ y.T for f, y in zip(vectors, cross, strict=True)]
        for e, x in zip(vectors, cross, strict=True)
    ]
    leak = [(e @ b) * np.eye(Z) - back @ x.T for e, x in zip(vectors, cross, strict=True)]
    return theory.equivalent.Directions(back, seen, leak, np.zeros((Z, Z)))
