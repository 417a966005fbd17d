// The library's closed forms, for the explorer: losses with spikes of finite strength, plateaus, spikes of F.
// Names and formulas are those of onestep.theory (random_features, staircase, spectra); docs there say where they come from.
// Activations come as tables that the site's build makes of the library: see .ci/website/explorer.py.

const theory = (() => {
  const REACH = 1 / 4; // largest s = c_1 η √(D/N) of the losses' series
  const FARTHEST = 0.4; // and of the spikes' operator …
  const SMALL = 0.05; // … which below this s is a series: rounding of a table would weigh √N
  const factorial = [1];
  for (let k = 1; k <= 40; k++) factorial.push(factorial[k - 1] * k);

  const sum = (count, term) => {
    let total = 0;
    for (let k = 0; k < count; k++) total += term(k);
    return total;
  };

  function dot(a, b) {
    let total = 0;
    for (let k = 0; k < a.length; k++) total += a[k] * b[k];
    return total;
  }

  /** A setting with what follows from it. n, d, N: whole numbers; teacher: [c⋆0 = 0, c⋆1, …]; activation: a table. */
  function problem({ n, d, N, ridge, teacher, noise, activation }) {
    const power = noise ** 2 + sum(teacher.length, (k) => factorial[k] * teacher[k] ** 2);
    const [phi, psi, c] = [d / n, d / N, activation.coefficients];
    const D = teacher[1] ** 2 + phi * power;
    const spread = activation.slope - c[1] ** 2; // Var σ'
    return {
      n, d, N, ridge, teacher, noise, activation, c, phi, psi, D,
      tail: activation.tail,
      rho: teacher[1] / Math.sqrt(D),
      growth: (phi * power * spread) / (c[1] ** 2 * D), // growth_ratio
      bestLinear: power - teacher[1] ** 2,
      unit: Math.sqrt(N) / (Math.abs(c[1]) * Math.sqrt(D)), // the step at which s = 1
    };
  }

  /** The largest exponent α for which the losses' (or the spikes') formulas hold. */
  const reach = (p, s = REACH) => Math.log(s * p.unit) / Math.log(p.n);

  /** T, df and their derivatives at the effective ridge ν. */
  function response(nu, p) {
    const s = p.c[1] ** 2;
    const B = nu + p.tail;
    const half = B + s / p.psi - s;
    const root = Math.sqrt(half ** 2 + 4 * s * B);
    const T = half > 0 ? (2 * B) / (half + root) : (root - half) / (2 * s);
    const dT = (1 - T) / root;
    const [share, slope] = [p.tail + s * T, s * dT];
    const gamma = p.phi / p.psi;
    return { nu, T, dT, df: (gamma * share) / (nu + share), ddf: (gamma * (slope * nu - share)) / (nu + share) ** 2 };
  }

  /** The response at the ν that belongs to λ, with dν/dλ. */
  function traces(p) {
    let nu = p.ridge + (p.phi / p.psi) * (p.c[1] ** 2 + p.tail);
    for (let k = 0; k < 500; k++) {
      const at = response(nu, p);
      const step = (nu - p.ridge - nu * at.df) / (1 - at.df - nu * at.ddf);
      if (!(step > 1e-15 * nu)) break;
      nu -= step;
    }
    const at = response(nu, p);
    return { ...at, dnu: 1 / (1 - at.df - nu * at.ddf) };
  }

  /** Both losses of the untrained network. */
  function untrained(p, t = traces(p)) {
    const linear = p.teacher[1] ** 2;
    const J = (linear * t.T + p.bestLinear) / t.nu;
    const dJ = (linear * t.dT) / t.nu - J / t.nu;
    return { train: p.ridge * J, test: -(t.nu ** 2) * dJ * t.dnu };
  }

  /** ξ with x^i = Σ_k ξ[i][k] H_k(x), or the inverse matrix: H_i(x) = Σ_k [i][k] x^k. */
  function powers(order, inverse) {
    const table = Array.from({ length: order + 1 }, () => new Float64Array(order + 1));
    for (let i = 0; i <= order; i++) {
      for (let m = 0; 2 * m <= i; m++) {
        const size = factorial[i] / (2 ** m * factorial[m] * factorial[i - 2 * m]);
        table[i][i - 2 * m] = inverse && m % 2 ? -size : size;
      }
    }
    return table;
  }
  const [XI, HERMITE] = [powers(12), powers(12, true)];

  function matrix(size, entry) {
    const out = new Float64Array(size * size);
    for (let i = 0; i < size; i++) for (let j = 0; j < size; j++) out[i * size + j] = entry(i, j);
    return out;
  }

  /** Of the powers first, first + 2, … up to K: the inverse covariance of these powers of g, and what it makes of their means. */
  const moments = (() => {
    const known = new Map();
    return (K, first) => {
      const key = `${K} ${first}`;
      if (!known.has(key)) {
        const ranks = [];
        for (let k = first; k <= K; k += 2) ranks.push(k);
        const inverse = matrix(ranks.length, (i, j) => sum(ranks.length, (m) => (HERMITE[ranks[m]][ranks[i]] * HERMITE[ranks[m]][ranks[j]]) / factorial[ranks[m]]));
        const toward = ranks.map((_, i) => sum(ranks.length, (j) => inverse[i * ranks.length + j] * XI[ranks[j]][0]));
        known.set(key, { ranks, inverse, toward, mean: sum(ranks.length, (j) => toward[j] * XI[ranks[j]][0]) });
      }
      return known.get(key);
    };
  })();

  /** Coefficients of the network's spikes E_g(z + √q g)^i in Hermite polynomials. */
  const grown = (p, i, k) => XI[i][k] * (1 + p.growth) ** ((i - k) / 2);

  /**
   * All of the drops that does not depend on the step, each with its ν-derivative, for odd and for even powers apart:
   * h = ZᵀR0ỹ, H = ZᵀR0Z and the metric (Γ - YᵀR0Y)⁻¹ of onestep.theory.staircase.
   */
  function forms(p, K) {
    const t = traces(p);
    const ratio = p.psi / p.phi;
    const free = 1 - ratio * t.df; // 1 - τ
    const even = (2 * p.c[2] ** 2) / p.psi;
    const common = (even * free) / t.nu;
    const dcommon = even * ((-ratio * t.ddf) / t.nu - free / t.nu ** 2);
    const scale = (k) => (k === 1 ? t.T / t.nu : 1 / t.nu);
    const dscale = (k) => (k === 1 ? t.dT / t.nu - t.T / t.nu ** 2 : -1 / t.nu ** 2);
    const blocks = [1, 2].filter((first) => first <= K).map((first) => {
      const { ranks, inverse, toward, mean } = moments(K, first);
      const size = ranks.length;
      const kappa = 1 / (1 + common + mean);
      const spread = ranks.map((i) => XI[i].map((_, k) => (k <= i ? grown(p, i, k) : 0)));
      const known = (weight) => ranks.map((i, at) => sum(Math.min(i, p.teacher.length - 1) + 1, (k) => k && spread[at][k] * p.teacher[k] * p.rho ** k * factorial[k] * weight(k)));
      const gram = (weight) => matrix(size, (i, j) => sum(ranks[Math.min(i, j)] + 1, (k) => spread[i][k] * spread[j][k] * factorial[k] * weight(k)));
      const metric = matrix(size, (i, j) => (inverse[i * size + j] - kappa * toward[i] * toward[j]) / free);
      const dmetric = matrix(size, (i, j) => (metric[i * size + j] * ratio * t.ddf + kappa ** 2 * dcommon * toward[i] * toward[j]) / free);
      return { ranks, h: known(scale), dh: known(dscale), H: gram(scale), dH: gram(dscale), metric, dmetric };
    });
    return { p, t, blocks };
  }

  /** Drops of both losses by spikes of these strengths, log|E_k| at [k - 1]; ±Infinity allowed. */
  function drops({ p, t, blocks }, logStrength) {
    let [J, dJ] = [0, 0];
    for (const { ranks, h, dh, H, dH, metric, dmetric } of blocks) {
      const size = ranks.length;
      const [small, large, b, Q] = [new Float64Array(size), new Float64Array(size), new Float64Array(size), new Float64Array(size * size)];
      for (let i = 0; i < size; i++) {
        const strength = logStrength[ranks[i] - 1];
        small[i] = Math.exp(Math.min(strength, 0)) * (p.c[ranks[i]] < 0 ? -1 : 1);
        large[i] = Math.exp(-Math.max(strength, 0));
        b[i] = small[i] * h[i];
        for (let j = 0; j <= i; j++) Q[i * size + j] = small[i] * small[j] * H[i * size + j] + large[i] * large[j] * metric[i * size + j];
      }
      const x = solve(Q, b);
      for (let i = 0; i < size; i++) {
        J += b[i] * x[i];
        dJ += 2 * small[i] * dh[i] * x[i];
        for (let j = 0; j < size; j++) dJ -= x[i] * x[j] * (small[i] * small[j] * dH[i * size + j] + large[i] * large[j] * dmetric[i * size + j]);
      }
    }
    return { train: p.ridge * J, test: -(t.nu ** 2) * dJ * t.dnu };
  }

  /** x with Qx = b by Cholesky's decomposition; Q positive definite, its lower half is overwritten. */
  function solve(Q, b) {
    const size = b.length;
    const [scale, x] = [new Float64Array(size), new Float64Array(size)];
    for (let i = 0; i < size; i++) scale[i] = 1 / Math.sqrt(Q[i * size + i]);
    for (let i = 0; i < size; i++) {
      let value = b[i] * scale[i];
      for (let j = 0; j <= i; j++) {
        let rest = Q[i * size + j] * scale[i] * scale[j];
        for (let k = 0; k < j; k++) rest -= Q[i * size + k] * Q[j * size + k];
        Q[i * size + j] = i === j ? Math.sqrt(rest) : rest / Q[j * size + j];
        if (j < i) value -= Q[i * size + j] * x[j];
      }
      x[i] = value / Q[i * size + i];
    }
    for (let i = size - 1; i >= 0; i--) {
      for (let k = i + 1; k < size; k++) x[i] -= Q[k * size + i] * x[k];
      x[i] /= Q[i * size + i];
    }
    for (let i = 0; i < size; i++) x[i] *= scale[i];
    return x;
  }

  const without = (base, drop) => ({ train: base.train - drop.train, test: base.test - drop.test });

  /** A function of α: both losses after a step n^α; null beyond `reach`. method="spiked", growing_rows=True. */
  function losses(p) {
    const K = p.c.length - 1;
    const form = forms(p, K);
    const base = untrained(p, form.t);
    const [first, end] = [Math.log(Math.abs(p.c[1]) * Math.sqrt(p.D)), reach(p) + 1e-12];
    const sizes = Array.from({ length: K }, (_, k) => Math.log(Math.abs(p.c[k + 1])) - (k / 2) * Math.log(p.N));
    const strength = new Float64Array(K);
    return (alpha) => {
      if (alpha > end) return null;
      const log = first + alpha * Math.log(p.n);
      for (let k = 0; k < K; k++) strength[k] = sizes[k] + (k + 1) * log;
      return without(base, drops(form, strength));
    };
  }

  const threshold = (k) => (k - 1) / (2 * k);

  /** How many spikes are born below α as n → ∞. */
  const born = (alpha) => (alpha >= 0.5 ? Infinity : Math.ceil(0.5 / (0.5 - alpha) - 1e-9) - 1);

  /** Both losses as n → ∞ after a step n^α, 0 <= α < 1/2; at a threshold spike k keeps a finite strength (boundary). */
  function limit(p, alpha) {
    const at = Math.max(born(alpha), 0) + 1;
    if (!(at < p.c.length)) return null;
    const size = at * Math.log(Math.abs(p.c[1]) * Math.sqrt(p.D)) + Math.log(Math.abs(p.c[at])) + ((at - 1) / 2) * Math.log(p.n / p.N);
    const last = Math.abs(alpha - threshold(at)) < 1e-9 ? size : -Infinity;
    const strength = Array.from({ length: at }, (_, k) => (k + 1 === at ? last : p.c[k + 1] ? Infinity : -Infinity));
    return without(untrained(p), drops(forms(p, at), strength));
  }

  /** The plateaus of both losses as n → ∞, between the thresholds 0, 1/4, 1/3, …: one for each ℓ = 1..order. */
  function plateaus(p, order) {
    return Array.from({ length: order }, (_, l) => {
      const [from, to] = [threshold(l + 1), threshold(l + 2)];
      return { order: l + 1, from, to, ...limit(p, (from + to) / 2) };
    });
  }

  /** The step with the least test error up to `reach`: {alpha, train, test, atEnd}; alpha is null where none is best. */
  function bestStep(p, at = losses(p)) {
    const end = reach(p);
    const test = (alpha) => at(alpha).test;
    const start = -end;
    const grid = Array.from({ length: 161 }, (_, k) => start + ((end - start) * k) / 160);
    const values = grid.map(test);
    const least = values.indexOf(Math.min(...values));
    let [low, high] = [grid[Math.max(least - 1, 0)], grid[Math.min(least + 1, 160)]];
    const golden = (Math.sqrt(5) - 1) / 2;
    let [x, y] = [high - golden * (high - low), low + golden * (high - low)];
    let [fx, fy] = [test(x), test(y)];
    while (high - low > 1e-7) {
      if (fx < fy) {
        [high, y, fy] = [y, x, fx];
        x = high - golden * (high - low);
        fx = test(x);
      } else {
        [low, x, fx] = [x, y, fy];
        y = low + golden * (high - low);
        fy = test(y);
      }
    }
    const alpha = [(low + high) / 2, grid[least]].reduce((a, b) => (test(a) <= test(b) ? a : b));
    const none = untrained(p);
    if (none.test <= test(alpha)) return { alpha: null, ...none, atEnd: false };
    return { alpha, ...at(alpha), atEnd: end - alpha < 1e-6 };
  }

  /** √j!-normalised Hermite coefficients of σ(R·), j = 0…, and last its second moment: Chebyshev series in 1/R. */
  function scaled({ series, largest }, R) {
    const t = (2 / R - 1 - 1 / largest) / (1 - 1 / largest);
    return series.map((c, j) => {
      let [a, b] = [0, 0];
      for (let k = c.length - 1; k > 0; k--) {
        const next = c[k] + 2 * t * a - b;
        b = a;
        a = next;
      }
      return c.length ? (c[0] + t * a - b) * (j === series.length - 1 ? R * R : R) : 0;
    });
  }

  /**
   * The singular values of F/√n outside its bulk after a step n^α, largest first, and the bulk's edge (feature_spikes).
   *
   * In Hermite functions of z, μ0(z, u) = E σ(rg + szu) is (su/R)^j N_j(R), R² = r² + s²u². Spike j stands at the w where
   * N V(w)/w times a squared singular value of T^{1/2} μ0 is 1; T acts on the linear function of z alone.
   */
  function spikes(p, alpha, count = 4) {
    const s = Math.exp(alpha * Math.log(p.n)) / p.unit;
    if (s > FARTHEST * (1 + 1e-9)) return null;
    const { nodes, weights, series } = p.activation; // u > 0, with both sides' weight
    const rows = series.length - 2;
    const table = Array.from({ length: rows }, () => new Float64Array(nodes.length));
    let [linear, square] = [0, 0];
    for (let node = 0; node < nodes.length; node++) {
      const u = nodes[node];
      const r2 = 1 + u * u * s * s * p.growth;
      const R = Math.sqrt(r2 + s * s * u * u);
      const N = scaled(p.activation, R);
      let [power, inside, slopes] = [1, 0, 0];
      for (let j = 0; j + 2 < series.length; j++) {
        table[j][node] = power * N[j] * Math.sqrt(weights[node]);
        inside += (power * N[j]) ** 2;
        slopes += (j + 1) * (power * N[j + 1]) ** 2 * (r2 / R ** 2);
        power *= (s * u) / R;
      }
      linear += weights[node] * slopes;
      square += weights[node] * (N[series.length - 1] - inside);
    }
    const law = bulk(p, linear, Math.max(0, square - linear));
    const [odd, even] = [1, 0].map((first) => (s < SMALL ? monomials(p, s, 2 - first) : table.filter((_, j) => j % 2 === first)));
    const [fixed, others] = [spectrum(even), spectrum(odd.slice(1))];
    const shares = others.map(({ vector }) => dot(vector, odd[0]) ** 2);
    const rest = Math.max(0, dot(odd[0], odd[0]) - sum(shares.length, (i) => shares[i]));
    const beyond = (w) => {
      const { T, value } = law.share(w);
      const x = (w - value) / p.N;
      const above = (values) => values.reduce((found, entry) => found + (entry.value > x), 0);
      const pull = T * (rest / x + sum(shares.length, (i) => shares[i] / (x - others[i].value)));
      return above(fixed) + above(others) + (pull > 1); // eigenvalues above x with those of the linear function scaled by T
    };
    const values = [];
    for (let high = law.turn; values.length < count && beyond(law.turn) > values.length; ) {
      while (beyond(high) > values.length) high *= 4;
      let [low, top] = [Math.log(law.turn), Math.log(high)];
      while (top - low > 1e-14 * Math.max(1, Math.abs(top))) {
        const middle = (low + top) / 2;
        if (middle === low || middle === top) break;
        if (beyond(Math.exp(middle)) > values.length) low = middle;
        else top = middle;
      }
      values.push(Math.sqrt(law.at(Math.exp(top))));
      high = law.turn;
    }
    return { edge: Math.sqrt(law.at(law.turn)), values };
  }

  /** μ0 of a small s as Σ_k c_k s^k E_g(z + √q g)^k u^k over odd or even k, in orthonormal functions of rising degree. */
  function monomials(p, s, first) {
    const ranks = moments(p.c.length - 1, first).ranks;
    const functions = (growth) => ranks.map((i) => Float64Array.from({ length: ranks.length + 1 }, (_, j) => {
      const k = 2 * j + (first % 2);
      return k <= i ? grown({ growth }, i, k) * Math.sqrt(factorial[k]) : 0;
    }));
    const [left, right] = [triangle(functions(p.growth)), triangle(functions(0))];
    return ranks.map((_, i) => Float64Array.from(ranks, (_, j) => sum(ranks.length, (m) => left[m][i] * p.c[ranks[m]] * s ** ranks[m] * right[m][j])));
  }

  /** Coefficients of vectors in the orthonormal basis made of them in their order. */
  function triangle(vectors) {
    const basis = [];
    return vectors.map((vector) => {
      const rest = vector.slice();
      const row = new Float64Array(vectors.length);
      for (let i = 0; i < basis.length; i++) {
        row[i] = dot(basis[i], rest);
        for (let k = 0; k < rest.length; k++) rest[k] -= row[i] * basis[i][k];
      }
      const length = Math.sqrt(dot(rest, rest));
      row[basis.length] = length;
      basis.push(rest.map((x) => (length ? x / length : 0)));
      return row;
    });
  }

  /** The law of the bulk of F/√n: x(w), the share of the features' variance seen from w, and the w where the bulk ends. */
  function bulk(p, s, tail) {
    const gamma = p.phi / p.psi;
    const ends = [1 + p.psi ** -0.5, 1 - p.psi ** -0.5].map((e) => tail + s * e ** 2);
    const share = (w) => {
      const root = -Math.sqrt((w - ends[0]) * (w - ends[1]));
      const B = tail - w;
      const T = (2 * B) / (B + s / p.psi - s + root);
      return { T, value: tail + s * T, slope: (s * (T - 1)) / root };
    };
    const at = (w) => {
      const { value } = share(w);
      return w + (gamma * w * value) / (w - value);
    };
    const rise = (w) => {
      const { value, slope } = share(w);
      return 1 + (gamma * value) / (w - value) + (gamma * w * (slope * w - value)) / (w - value) ** 2;
    };
    let [low, high] = [ends[0], 2 * ends[0]];
    while (rise(high) <= 0) high *= 2;
    for (let k = 0; k < 60; k++) {
      const middle = (low + high) / 2;
      if (rise(middle) > 0) high = middle;
      else low = middle;
    }
    return { share, at, turn: high };
  }

  /** Squared singular values of a matrix given by its rows, with the right vectors: Jacobi's rotations of rows. */
  function spectrum(rows) {
    const A = rows.map((row) => row.slice());
    for (let sweep = 0, moved = true; moved && sweep < 30; sweep++) {
      moved = false;
      for (let i = 0; i < A.length; i++) {
        for (let j = i + 1; j < A.length; j++) {
          const [a, b, c] = [dot(A[i], A[i]), dot(A[j], A[j]), dot(A[i], A[j])];
          if (!(Math.abs(c) > 1e-13 * Math.sqrt(a * b)) || Math.abs(c) < 1e-300) continue;
          moved = true;
          const zeta = (b - a) / (2 * c);
          const t = (Math.sign(zeta) || 1) / (Math.abs(zeta) + Math.sqrt(1 + zeta * zeta));
          const cos = 1 / Math.sqrt(1 + t * t);
          for (let k = 0; k < A[i].length; k++) {
            const [x, y] = [A[i][k], A[j][k]];
            A[i][k] = cos * (x - t * y);
            A[j][k] = cos * (y + t * x);
          }
        }
      }
    }
    return A.filter((row) => dot(row, row) > 0).map((row) => {
      const value = dot(row, row);
      return { value, vector: row.map((x) => x / Math.sqrt(value)) };
    });
  }

  return { problem, reach, untrained, losses, born, limit, plateaus, bestStep, spikes, REACH, FARTHEST };
})();
