"""The equivalent Gaussian features: every formula against brute force on explicit draws and matrices."""

import dataclasses

import numpy as np
import pytest

from onestep import Problem, simulate, theory

P2 = Problem(1000, 300, 500, teacher=(0.0, 1.0, 2**-0.5))


@pytest.fixture(scope="module")
def one_batch():
    """A model solved at a large step, and one first batch of the same ratios with its own M and C."""
    p = Problem(650, 400, 360, 0.05, (0.0, 1.0, 0.6, 0.1), teacher=(0.0, 1.0, 0.8), noise=0.3)
    draw = simulate.draw(p, np.random.default_rng(11))
    draw = dataclasses.replace(draw, y=draw.y - draw.y.mean())
    M = (draw.X.T * draw.y) @ draw.X / p.n
    C = (draw.X.T * draw.y**2) @ draw.X / p.n
    s = draw.X @ draw.beta_star
    weight = np.full(p.n, 1 / p.n)
    along, pair = (np.reshape(weight * s**k, (*[1] * k, -1)) for k in (1, 2))
    size = p.phi * np.mean(draw.y**2)
    law = theory.fixed_point.first_batch.FirstBatch(p.phi, draw.y, weight, along, pair, along @ draw.y, size, 0.0, 0.0)
    f = theory.fixed_point.features(p, 0.5 * np.sqrt(p.n), law, "correlated", 12, 2)
    state, _ = theory.fixed_point.iterate(f)
    now = f.solution(state)
    at = theory.fixed_point.pencil(f, now, 1.0)
    c, R = f.linear.c, f.linear.c.shape[1]
    mats = [p.N / f.dimensions[1] * (c.T * (w * f.units.chance * now.q)) @ c for w in f.units.mix]
    parts = [np.eye(p.d), M, M @ M, C]
    L = np.kron(at.gamma_inv, np.eye(p.d)) + sum(np.kron(a, part) for a, part in zip(mats, parts, strict=True))
    return f, state, draw, parts, np.linalg.inv(L).reshape(R, p.d, R, p.d)


def left_over(f, q, g, k):
    """√g T_k √g on all nodes, from its definition."""
    m, root = f.m[k], np.sqrt(g)
    K = f.p.N / f.dimensions[k] * (m.T * (f.units.chance * q)) @ m
    return root[:, None] * np.linalg.inv(np.eye(g.size) + root[:, None] * K * root) * root


def test_map_against_an_explicit_first_batch(one_batch):
    f, state, _, parts, inverse = one_batch
    p, c, rows, units = f.p, f.linear.c, f.linear.h, f.units
    now, new = f.solution(state), f.solution(theory.fixed_point.update(f, state, 1.0))
    g = f.pz / (1 + now.kappa)
    traces = [np.einsum("ixjy,yx->ij", inverse, part) / p.d for part in parts]
    total = sum(w * np.einsum("ui,ij,uj->u", c, t, c) for w, t in zip(units.mix, traces, strict=True))
    for w, t in zip(units.mix, traces, strict=True):  # each of the four terms matters at this accuracy
        share = np.abs(w * np.einsum("ui,ij,uj->u", c, t, c)).max() / total.max()
        assert share > 0.03
    gamma = (rows.T * g) @ rows
    T = np.linalg.inv(gamma) - np.linalg.solve(gamma, np.linalg.solve(gamma, traces[0]).T).T
    load = p.N * (units.chance * now.q) @ f.noise + p.d * np.einsum("zi,ij,zj->z", rows, T, rows)
    for k in (0, 2, 3):
        other = left_over(f, now.q, g, k)
        more = np.einsum("uz,zy,uy->u", f.m[k], other, f.m[k])
        if k < 3:
            assert more.max() > 0.01 * total.max()
        total = total + more
        load = load + f.dimensions[k] * (1 - np.diag(other) / g) / g
    np.testing.assert_allclose(1 / new.q, p.ridge + f.noise @ g + total, rtol=0.006)
    np.testing.assert_allclose(new.kappa, load / p.n, rtol=0.006)


def test_directions_against_an_explicit_first_batch(one_batch):
    f, state, draw, parts, inverse = one_batch
    at = theory.fixed_point.pencil(f, f.solution(state), 1.0)
    g, p = at.g, f.p
    beta = draw.X.T @ draw.y / p.n
    beta /= np.linalg.norm(beta)
    basis = (f.linear.h * np.sqrt(g)[:, None]) @ at.gamma_inv
    gamma = np.linalg.inv(at.gamma_inv)

    def T(v, w):
        form = np.einsum("ixjy,x,y->ij", inverse, v, w)
        return (v @ w) * np.eye(g.size) - basis @ ((v @ w) * gamma - form) @ basis.T

    bb, sb, ss = T(beta, beta), T(draw.beta_star, beta), T(draw.beta_star, draw.beta_star)
    found = theory.fixed_point.directions(f, at)
    np.testing.assert_allclose(np.linalg.inv(found.inverse), bb, atol=0.01)
    np.testing.assert_allclose(found.R[0][0], ss - sb @ np.linalg.inv(bb) @ sb.T, atol=0.02)
    cosine = beta @ draw.beta_star
    np.testing.assert_allclose(found.V[0], cosine * np.eye(g.size) - np.linalg.inv(bb) @ sb.T, atol=0.002)
    assert np.abs(found.V[0]).max() > 0.005
    image = parts[1] @ beta
    b_image, s_image = T(image, beta), T(image, draw.beta_star)
    X = (beta @ image) * np.eye(g.size) - b_image @ np.linalg.inv(bb)
    np.testing.assert_allclose(found.X, X, atol=0.05)  # the drawn β̂ᵀMβ̂ is 5 % off its limit
    np.testing.assert_allclose(found.W[0], s_image - b_image @ np.linalg.inv(bb) @ sb.T, atol=0.008)
    assert np.abs(found.X).max() > 0.3 and np.abs(found.W[0]).max() > 0.025
    trace = np.einsum("ixjx->ij", inverse) / p.d
    np.testing.assert_allclose(found.generic, np.eye(g.size) - basis @ (gamma - trace) @ basis.T, atol=0.01)
    assert np.abs(np.linalg.inv(found.inverse) - found.generic).max() > 0.05  # β̂ is no generic direction


@pytest.mark.parametrize("output", ["negligible", "full"])
def test_test_error_is_the_derivative_of_the_training_loss(output):
    p = P2.replace(noise=0.5, initial_output=output)
    eta = 15.0
    family = theory.fixed_point.family(p, order=12)
    f = family.features(eta)
    x, _ = family.solve(f, eta)
    direction, h = (1 + f.solution(x).kappa) ** 2, 1e-5

    def at(omega):
        y = x
        for _ in range(200):
            y = (y + theory.fixed_point.update(f, y, omega)) / 2
        return theory.fixed_point.training_loss(f, y, omega)

    slope = (at(1 + h * direction) - at(1 - h * direction)) / (2 * h)
    assert theory.fixed_point.losses_at(f, x)[1] == pytest.approx(slope, rel=1e-6)


def explicit_space(f, output, dims):
    """A covariance of (dims·Z) coordinates, the teacher in it and the directions of the step."""
    half = np.random.default_rng(1).standard_normal((dims * f.z.size, 60)) / 8
    B = half @ half.T
    b, ends, away = np.eye(dims)[0], f.batch.cosine, f.batch.away
    zeta = np.eye(dims)[1]
    vectors = [ends[0] * b + away * zeta]
    if output == "full":
        side = -ends[0] * ends[1] / away
        vectors.append(ends[1] * b + side * zeta + np.sqrt(1 - ends[1] ** 2 - side**2) * np.eye(dims)[2])
    return B, b, vectors


def linear_problem(f, B, image, e_1, root, share, generic):
    """Eq. (31) without the units of degree 0: functions of the node, then these times directions; B as above.

    The length's coupling to image, Mβ̂, has T_1 for the resolvent in its square; that to e_1 has its own.
    """
    Z, one, bend, z, units = f.z.size, np.eye(f.z.size), f.m[1] * root, f.z / f.chi, f.units
    scale, rest = f.p.N / (f.p.d - 1), np.eye(len(B) - f.z.size) + B[f.z.size :, f.z.size :]
    Y, Y_1 = (scale * ((f.m[2] * root).T * (share * slope)) @ bend for slope in units.length_slope)
    assert np.abs(Y).max() > 0.01 and (np.abs(Y_1).max() > 1e-3) == bool(f.batch.shift)
    exact = np.kron(image[None, 1:], one) @ np.linalg.inv(rest) @ np.kron(image[1:, None], one)
    own = one + z[:, None] * (B[:Z, :Z] - scale * (bend.T * (share * units.plane[0, 0])) @ bend) * z  # less the nodes'
    own += Y @ (exact - (image[1:] @ image[1:]) * generic) @ Y.T
    side = z[:, None] * B[:Z, Z:] + np.kron(image[None, 1:], Y) + np.kron(e_1[None, 1:], Y_1)
    return np.block([[own, side], [side.T, rest]])


@pytest.mark.parametrize("output", ["negligible", "full"])
def test_loss_is_the_solution_of_the_whole_linear_problem(output, monkeypatch):
    """With a small explicit input space in place of T's equivalents, the block elimination is an identity.

    Every unit has its own mean along a quadratic form, by eq. (38), and first batches have two mean labels.
    """
    p = P2.replace(initial_output=output, noise=0.2, first_layer="gaussian", d=60, activation="tilted_sin")
    f = theory.fixed_point.family(p, order=8).features(20.0)
    state = f.start()
    now = f.solution(state)
    g, Z, dims, d = f.pz / (1 + now.kappa), f.z.size, 4, p.d
    B, b, vectors = explicit_space(f, output, dims)
    plane = f.batch.plane
    image = np.array([plane[1, 0, 0], plane[1, 0, 1], 0.0, f.batch.outside])  # Mβ̂
    given = explicit_directions(np.linalg.inv(np.eye(dims * Z) + B), b, vectors, image, Z)
    monkeypatch.setattr(theory.fixed_point.equations, "directions", lambda *_: given)
    # `saturation` has a test of its own
    monkeypatch.setattr(theory.fixed_point.equations, "saturation", lambda f, at, share, Xi: np.eye(Z))

    root, share, units = np.sqrt(g), f.units.chance * now.q, f.units
    strength = np.sqrt(p.N * share)
    one, bend, z = np.eye(Z), f.m[1] * root, f.z / f.chi
    first = linear_problem(f, B, image, vectors[-1], root, share, given.generic)

    shares = {2: share * units.plane[1, 1] ** 2, 3: share}
    second, third = (one + p.N / f.dimensions[k] * ((f.m[k] * root).T * shares[k]) @ (f.m[k] * root) for k in (2, 3))
    columns = np.zeros(((dims + 1) * Z, share.size))  # channels: β̂ and 1, three directions, (ζᵀx)² - 1
    columns[:Z] = (f.m[0] * root).T * strength
    quadratic = (f.m[2] * root).T * strength
    columns[-Z:] = quadratic * ((units.plane[1, 1] - 1) / d)
    columns[Z:-Z] = np.kron(
        vectors[0][1:, None], quadratic * z[:, None] * np.sqrt(2) / d / f.batch.away * units.plane[0, 1]
    )
    label = np.zeros((dims + 1) * Z)
    label[:Z], label[Z : 2 * Z], label[-Z:] = root * f.label[0], root * f.label[1], root * f.label[2]
    whole = np.block([[first, np.zeros((dims * Z, Z))], [np.zeros((Z, dims * Z)), second]])
    metric = np.eye(share.size)
    if output == "full":
        lacking = bend.T * (strength * units.overlap)
        metric -= lacking.T @ given.generic @ lacking
    plain = one + p.N / f.dimensions[2] * ((f.m[2] * root).T * share) @ (f.m[2] * root)
    shared = units.mix.T @ f.batch.products @ units.mix * (d - 1) / (d + 1) / d
    metric += shared * (quadratic.T @ np.linalg.solve(plain, quadratic))
    across = plane[2, 0, 0] - plane[1, 0, 0] ** 2 - plane[1, 0, 1] ** 2  # of ‖Mβ̂‖²
    cross = quadratic * z[:, None] * units.mix[1]
    metric += 2 * across / d**2 * cross.T @ given.generic @ cross
    expected = g @ f.unseen
    for level in np.sqrt(f.batch.phi * f.batch.moments[2] / d * (1 + 2 / d)) * np.array([-1, 1]):
        now_columns = columns.copy()
        now_columns[:Z] += level * quadratic * units.mix[1] / np.sqrt(2)
        problem = whole + now_columns @ np.linalg.solve(metric, now_columns.T)
        expected += label @ np.linalg.solve(problem, label) / 2
    expected += root * f.label[3] @ np.linalg.solve(third, root * f.label[3])
    assert theory.fixed_point.training_loss(f, state, 1.0) == pytest.approx(expected, rel=1e-9)


def test_the_part_of_other_directions_in_the_linear_part_counts_once():
    """The direction Σβ̂ with all that varies in it, solved as it stands, against the correction of what lacks a part."""
    p = P2.replace(activation=(0.0, 1.0, 0.4), d=40)
    f = theory.fixed_point.family(p, order=8).features(15.0)
    now = f.solution(f.start())
    at = theory.fixed_point.pencil(f, now, 1.0)
    share = f.units.chance * now.q
    weight = p.N / (p.d - 1) * share * f.units.plane[0, 0]
    c, rows = f.linear.c, f.linear.h * np.sqrt(at.g)[:, None]
    varied = np.zeros((c.shape[1],) * 2)
    for j in range(f.units.readouts):
        same_readout = np.arange(j, c.shape[0], f.units.readouts)
        off = c[same_readout] - np.average(c[same_readout], axis=0, weights=weight[same_readout])
        varied += (off.T * weight[same_readout]) @ off
    link = (rows @ (c.T * weight) @ c) @ rows.T  # of the constant at the nodes to that direction
    alone = np.eye(link.shape[0]) + 0.7 * link  # the direction's own, without what varies
    Xi = link @ np.linalg.solve(alone, link)
    expected = link @ np.linalg.solve(alone + rows @ varied @ rows.T, link)
    assert np.abs(expected - Xi).max() > 0.01 * np.abs(Xi).max()
    found = theory.fixed_point.equations.saturation(f, at, share, Xi) @ Xi
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


def explicit_directions(inverse, b, vectors, image, Z):
    """What `directions` returns, from the linear problem's inverse (dims Z, dims Z); b is β̂, image Mβ̂."""

    def between(v, w):
        return np.kron(v, np.eye(Z)) @ inverse @ np.kron(w, np.eye(Z)).T

    back = np.linalg.inv(between(b, b))
    cross = [between(e, b) for e in vectors]
    R = [
        [between(e, f) - x @ back @ y.T for f, y in zip(vectors, cross, strict=True)]
        for e, x in zip(vectors, cross, strict=True)
    ]
    V = [(e @ b) * np.eye(Z) - back @ x.T for e, x in zip(vectors, cross, strict=True)]
    onto = between(image, b) @ back
    W = [between(image, e) - onto @ x.T for e, x in zip(vectors, cross, strict=True)]
    return theory.fixed_point.equations.Directions(back, R, V, W, (image @ b) * np.eye(Z) - onto, 0.1 * np.eye(Z))


@pytest.mark.parametrize(("d", "close"), [(10**8, 1e-5), (40, 0.1)])
def test_degree_0_moves_with_the_spike_by_degree_1(d, close):
    """∂m_0/∂s = z m_1/(rχ) as d grows, which makes (30) of the covariance of s and the rest of a row."""
    f, h = Problem(100, 10, 50, activation="softplus").student, 1e-4
    s, z, length = 0.7, np.array([-1.5, 0.4, 2.0]), np.array([0.9, 1.0, 1.2])
    up, m, down = (theory.quadrature.expand(f, (s + move) * z, length, d)[0] for move in (h, 0.0, -h))
    np.testing.assert_allclose((up - down)[0] / (2 * h), z * m[1] / length, rtol=close)
    assert np.abs(m[1]).min() > 0.2


def test_a_sample_left_out_has_its_residual_over_one_less_its_leverage():
    """Eq. (39), on a drawn network."""
    p = Problem(40, 12, 25, 0.05, "gelu", (0.0, 1.0, 0.5), 0.3)
    draw = simulate.draw(p, np.random.default_rng(0))
    F = p.student(draw.X2 @ draw.W0.T)

    def fitted(rows):
        gram = F[rows].T @ F[rows] + p.ridge * p.n * np.eye(p.N)  # λn of the whole sample
        return F @ np.linalg.solve(gram, F[rows].T @ draw.y2[rows])

    H = F @ np.linalg.solve(F.T @ F + p.ridge * p.n * np.eye(p.N), F.T)
    inside = draw.y2 - fitted(np.arange(p.n))
    for j in (0, 7, 31):
        left_out = draw.y2[j] - fitted(np.delete(np.arange(p.n), j))[j]
        assert left_out == pytest.approx(inside[j] / (1 - H[j, j]), rel=1e-9)


def test_equal_leverages_make_generalised_cross_validation():
    """Eq. (41) without a step: (1 + κ)² times the mean squared residual, which is L_tr - λ ∂L_tr/∂λ."""
    p, h = Problem(10**8, 3 * 10**7, 5 * 10**7, 0.1, "softplus", (0.0, 1.0, 0.5), 0.3), 1e-4
    below, here, above = (theory.losses(p.replace(ridge=0.1 * np.exp(move)), 0.0) for move in (-h, 0.0, h))
    f = theory.fixed_point.family(p).features(0.0)
    kappa = f.solution(theory.fixed_point.iterate(f)[0]).kappa
    assert np.ptp(kappa) < 1e-3 * kappa.mean()
    residual = here.train - (above.train - below.train) / (2 * h)
    assert here.test == pytest.approx((1 + kappa.mean()) ** 2 * residual, rel=1e-5)
