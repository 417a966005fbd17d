// The explorer's controls and pictures. What they show comes from theory.js, and from data.js, which the build makes.

(() => {
  const place = document.getElementById("explorer");
  const { activations, suggestions, colors, shades } = EXPLORER;
  const ORDER = 4; // stairs and spikes shown
  const STEPS = 100; // points of a curve
  const [COLUMNS, ROWS, LEAST, MOST] = [36, 26, 0.5, 50]; // of the phase diagram; its range of n/d

  const CONTROLS = [
    { key: "activation", label: "activation σ" },
    { key: "digits", label: "log₁₀ n, samples", low: 3, high: 48, step: 0.1 },
    { key: "inputs", label: "d/n, inputs", low: 0.02, high: 2, log: true },
    { key: "hidden", label: "N/n, hidden units", low: 0.05, high: 10, log: true },
    { key: "ridge", label: "λ, ridge penalty", low: 1e-4, high: 10, log: true },
    { key: "noise", label: "σ_ε, label noise", low: 0, high: 2, step: 0.05 },
    { key: "c1", label: "c⋆1, teacher’s line", low: 0, high: 1.5, step: 0.05 },
    { key: "c2", label: "c⋆2, its parabola", low: -1, high: 1, step: 0.05 },
    { key: "c3", label: "c⋆3, its cubic", low: -1, high: 1, step: 0.05 },
    { key: "alpha", label: "α, exponent of the step marked", low: 0, high: 0.5, step: 0.005 },
  ];

  const state = {};
  const inputs = {};

  // Numbers as text

  const SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const raised = (k) => (k < 0 ? "⁻" : "") + [...String(Math.abs(k))].map((digit) => SUPERSCRIPT[digit]).join("");

  function shown(value) {
    if (value === null || !Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    if (size >= 1e7 || (size > 0 && size < 1e-4)) {
      const [digits, power] = value.toExponential(2).split("e");
      return `${Number(digits)}·10${raised(Number(power))}`;
    }
    if (size >= 1e4) return Math.round(value).toLocaleString("en");
    return String(Number(value.toPrecision(4)));
  }

  // Controls

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  function control({ key, label, low, high, step, log }) {
    const id = `explorer-${key}`;
    const name = element("label", { for: id }, label);
    if (key === "activation") {
      const choice = element("select", { id }, ...Object.entries(activations).map(([value, { label }]) => element("option", { value }, label)));
      choice.addEventListener("input", () => change(key, choice.value));
      inputs[key] = (value) => (choice.value = value);
      return element("div", { class: "control" }, name, choice);
    }
    const [from, to] = log ? [Math.log10(low), Math.log10(high)] : [low, high];
    const range = element("input", { id, type: "range", min: from, max: to, step: log ? 0.01 : step });
    const number = element("input", { type: "number", min: low, max: high, step: "any", "aria-label": `${label}: its value` });
    range.addEventListener("input", () => change(key, log ? Number((10 ** range.value).toPrecision(3)) : Number(range.value)));
    number.addEventListener("change", () => change(key, Math.min(high, Math.max(low, Number(number.value)))));
    inputs[key] = (value) => {
      range.value = log ? Math.log10(value) : value;
      number.value = value;
      range.setAttribute("aria-valuetext", String(value));
    };
    return element("div", { class: "control" }, name, number, range);
  }

  let waiting = 0;
  function change(key, value) {
    state[key] = value;
    inputs[key](value);
    waiting ||= requestAnimationFrame(draw);
  }

  function suggest(name) {
    const { teacher, ...rest } = suggestions[name].setting;
    for (const [key, value] of Object.entries({ ...rest, c1: teacher[0], c2: teacher[1], c3: teacher[2] })) change(key, value);
  }

  /** What the controls say, as theory.problem takes it. */
  function setting({ activation, digits, inputs, hidden, ridge, noise, c1, c2, c3 }) {
    const n = Math.round(10 ** digits);
    const [d, N] = [inputs, hidden].map((ratio) => Math.max(1, Math.round(ratio * n)));
    return { n, d, N, ridge, noise, teacher: [0, c1, c2, c3], activation: activations[activation] };
  }

  /** The suggestion with this setting but for the keys named, if there is one. */
  function suggested(...except) {
    return Object.values(suggestions).find(({ setting: { teacher, ...rest } }) => {
      const wanted = { ...rest, c1: teacher[0], c2: teacher[1], c3: teacher[2] };
      return Object.keys(wanted).every((key) => except.includes(key) || Object.is(wanted[key], state[key]));
    });
  }

  // Pictures, as SVG

  const MARGIN = { left: 46, right: 12, top: 26, bottom: 36 };

  function picture(id, caption) {
    const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    drawing.setAttribute("role", "img");
    const figure = element("figure", { id: `explorer-${id}` }, drawing, element("figcaption", {}, ...caption));
    return { figure, drawing };
  }

  /** Scales, axes and what goes between them; y is logarithmic where `log` is set. */
  function axes({ drawing }, { title, xlabel, ylabel, y, log, yticks, xticks, x = [0, 0.5] }) {
    const width = drawing.clientWidth || 340;
    const height = Math.round(Math.min(320, Math.max(230, width * 0.72)));
    const [left, right, top, bottom] = [MARGIN.left, width - MARGIN.right, MARGIN.top, height - MARGIN.bottom];
    const scale = (value) => (log ? Math.log(value) : value);
    const X = (value) => left + ((value - x[0]) / (x[1] - x[0])) * (right - left);
    const Y = (value) => bottom - ((scale(value) - scale(y[0])) / (scale(y[1]) - scale(y[0]))) * (bottom - top);
    const parts = [`<text class="title" x="${left}" y="14">${title}</text>`];
    for (const value of xticks ?? [0, 0.1, 0.2, 0.3, 0.4, 0.5]) {
      parts.push(`<line class="grid" x1="${X(value)}" x2="${X(value)}" y1="${top}" y2="${bottom}"/><text class="tick middle" x="${X(value)}" y="${bottom + 15}">${value}</text>`);
    }
    for (const [value, label] of yticks ?? ticks(y, log)) {
      parts.push(`<line class="grid" x1="${left}" x2="${right}" y1="${Y(value)}" y2="${Y(value)}"/><text class="tick end" x="${left - 5}" y="${Y(value) + 4}">${label}</text>`);
    }
    parts.push(`<text class="tick middle" x="${(left + right) / 2}" y="${height - 5}">${xlabel}</text>`);
    parts.push(`<text class="tick middle" transform="translate(11 ${(top + bottom) / 2}) rotate(-90)">${ylabel}</text>`);
    const line = (points, style) => {
      const seen = points.filter(([, value]) => value !== null && Number.isFinite(value));
      if (seen.length) parts.push(`<path class="${style}" d="M${seen.map(([a, b]) => `${X(a).toFixed(1)},${Y(b).toFixed(1)}`).join("L")}"/>`);
    };
    const finish = (says) => {
      drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
      drawing.setAttribute("height", height);
      drawing.setAttribute("aria-label", says);
      drawing.innerHTML = parts.join("");
    };
    return { X, Y, left, right, top, bottom, parts, line, finish };
  }

  function ticks([low, high], log) {
    if (log) {
      const [from, to] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
      if (to - from < 2) return [0.2, 0.5, 1, 2, 5, 10, 20, 50, 100].filter((value) => value >= low && value <= high).map((value) => [value, value]);
      const every = Math.ceil((to - from) / 6);
      return Array.from({ length: Math.floor((to - from) / every) + 1 }, (_, k) => from + k * every).map((k) => [10 ** k, Math.abs(k) < 3 ? 10 ** k : `10${raised(k)}`]);
    }
    const rough = (high - low) / 5;
    const size = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * size).find((value) => value >= rough);
    const found = [];
    for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-9); k++) found.push([k * step, Number((k * step).toPrecision(6))]);
    return found;
  }

  function thresholds({ parts, X, top, bottom }) {
    for (let k = 2; k <= ORDER + 1; k++) {
      const x = X((k - 1) / (2 * k));
      parts.push(`<line class="threshold" x1="${x}" x2="${x}" y1="${top}" y2="${bottom}"/>`);
      if (k <= ORDER) parts.push(`<text class="tick middle" x="${x}" y="${top + 1}">z${raised(k)}</text>`);
    }
  }

  const dot = (x, y, style, size = 4) => `<circle class="${style}" cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${size}"/>`;

  function mark({ parts, X, Y, top, bottom }, value) {
    const x = X(state.alpha);
    parts.push(`<line class="mark" x1="${x}" x2="${x}" y1="${top}" y2="${bottom}"/>`);
    if (value !== null) parts.push(dot(x, Y(value), "marked", 4.5));
  }

  function loss(view, kind, { p, curve, stairs, none, best, here, every }) {
    const test = kind === "test";
    const name = test ? "Test error" : "Training loss";
    const seen = [none[kind], ...curve.map((point) => point[1][kind]), ...stairs.map((stair) => stair[kind])];
    if (every) seen.push(...every[kind]);
    if (test) seen.push(p.bestLinear);
    const [low, high] = [Math.min(...seen), Math.max(...seen)];
    const room = 0.07 * (high - low) || 0.1 * high || 1;
    const chart = axes(view, { title: `${name} after a step n^α`, xlabel: "α", ylabel: name.toLowerCase(), y: [Math.max(0, low - room), high + 2.2 * room] });
    const { parts, line, X, Y, right, left } = chart;
    thresholds(chart);
    if (test) {
      line([[0, p.bestLinear], [0.5, p.bestLinear]], "linear");
      parts.push(`<text class="tick end" x="${right}" y="${Y(p.bestLinear) - 4}">best linear predictor</text>`);
    }
    for (const { from, to, ...level } of stairs) line([[from, level[kind]], [to, level[kind]]], "stair");
    line(curve.map(([alpha, value]) => [alpha, value[kind]]), "curve");
    parts.push(`<path class="none" d="M${left} ${Y(none[kind])}l9 -5v10z"/>`);
    if (every) every.alpha.forEach((alpha, k) => parts.push(dot(X(alpha), Y(every[kind][k]), "every", 3.5)));
    mark(chart, here && here[kind]);
    if (test && best.alpha !== null && best.alpha >= 0 && !best.atEnd) parts.push(`<path class="best" d="M${X(best.alpha)} ${Y(best.test) - 7}l6 7l-6 7l-6 -7z"/>`);
    chart.finish(`${name} against α, from ${shown(none[kind])} without a step to ${shown(curve.at(-1)[1][kind])} at α = ${shown(curve.at(-1)[0])}. ${here ? `At the marked step ${shown(here[kind])}.` : ""}`);
  }

  function spectrum(view, { p, grid, now }) {
    const end = grid.at(-1)[1];
    const highest = Math.max(...grid.map(([, { edge, values }]) => Math.max(edge, ...values)));
    const chart = axes(view, { title: "Singular values of F/√n", xlabel: "α", ylabel: "singular value", log: true, y: [end.edge / 2, Math.max(highest, 4 * end.edge) * 1.5] });
    const { parts, line, X, Y, left, bottom } = chart;
    const points = grid.map(([alpha, { edge }]) => `${X(alpha).toFixed(1)},${Y(edge).toFixed(1)}`).join("L");
    parts.push(`<path class="bulk" d="M${left},${bottom}L${points}L${X(grid.at(-1)[0])},${bottom}z"/><text class="tick" x="${left + 6}" y="${bottom - 6}">bulk</text>`);
    thresholds(chart);
    for (let j = 0; j < ORDER; j++) {
      const seen = grid.filter(([, { values }]) => values.length > j).map(([alpha, { values }]) => [alpha, values[j]]);
      line(seen, `spike spike${j + 1}`);
      if (seen.length) parts.push(`<text class="tick end" x="${X(seen.at(-1)[0]) - 3}" y="${Y(seen.at(-1)[1]) - 5}">${j + 1}</text>`);
    }
    mark(chart, null);
    for (const value of now?.values ?? []) parts.push(dot(X(state.alpha), Y(value), "marked", 4));
    chart.finish(now ? `At the marked step ${now.values.length} singular values stand out of the bulk, which ends at ${shown(now.edge)}: ${now.values.map(shown).join(", ") || "none"}.` : "The marked step is beyond these formulas.");
  }

  const canvas = element("canvas", { width: COLUMNS, height: ROWS });
  const context = canvas.getContext("2d");
  const palette = shades.map((shade) => [1, 3, 5].map((k) => parseInt(shade.slice(k, k + 2), 16)));

  function phases(view, { p, every }) {
    const chart = axes(view, { title: "When does the step pay?", xlabel: "α", ylabel: "samples per input n/d", log: true, y: [LEAST, MOST], yticks: [0.5, 1, 2, 5, 10, 20, 50].map((k) => [k, k]) });
    const { parts, X, Y, left, right, top, bottom } = chart;
    const says = `At n/d = ${shown(p.n / p.d)} and α = ${state.alpha}`;
    if (p.bestLinear < 1e-9) {
      parts.push(`<text class="tick middle" x="${(left + right) / 2}" y="${(top + bottom) / 2}">A line without noise: nothing to gain</text>`);
      chart.finish("A linear predictor makes no error: no step pays.");
      return;
    }
    const column = (k) => (0.5 * (k + 0.5)) / COLUMNS;
    const row = (k) => LEAST * (MOST / LEAST) ** ((k + 0.5) / ROWS);
    const image = context.createImageData(COLUMNS, ROWS);
    const values = [];
    for (let j = 0; j < ROWS; j++) {
      const at = theory.losses(theory.problem({ ...p, d: Math.max(1, Math.round(p.n / row(j))) }));
      values.push(Array.from({ length: COLUMNS }, (_, k) => {
        const found = at(column(k));
        if (!found) return null;
        const height = Math.log2(found.test / p.bestLinear);
        const color = palette[Math.round(Math.min(1, Math.max(0, (height + 1) / 2)) * (palette.length - 1))];
        image.data.set([...color, 255], 4 * ((ROWS - 1 - j) * COLUMNS + k));
        return height;
      }));
    }
    context.putImageData(image, 0, 0);
    parts.push(`<defs><pattern id="beyond" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" x2="0" y2="6"/></pattern></defs>`);
    parts.push(`<rect x="${left}" y="${top}" width="${right - left}" height="${bottom - top}" fill="url(#beyond)"/>`);
    parts.push(`<image href="${canvas.toDataURL()}" x="${left}" y="${top}" width="${right - left}" height="${bottom - top}" preserveAspectRatio="none" style="image-rendering: pixelated"/>`);
    const crossing = contour(values, (k) => X(column(k)), (j) => Y(row(j)));
    if (crossing) parts.push(`<path class="halo" d="${crossing}"/><path class="even" d="${crossing}"/>`);
    const quadratic = Math.sqrt(p.n / 20); // n = d²/20
    if (quadratic < MOST) {
      const y = Y(Math.max(LEAST, quadratic));
      parts.push(`<line class="halo" x1="${left}" x2="${right}" y1="${y}" y2="${y}"/><line class="quadratic" x1="${left}" x2="${right}" y1="${y}" y2="${y}"/>`);
    }
    for (const [alpha, ratio] of every ?? []) parts.push(dot(X(alpha), Y(ratio), "every filled", 4));
    const ratio = p.n / p.d;
    const here = [X(state.alpha), Y(Math.min(MOST, Math.max(LEAST, ratio)))];
    parts.push(dot(...here, "ring outer", 7), dot(...here, "ring", 7));
    const found = theory.losses(p)(state.alpha);
    chart.finish(`${says} the test error is ${found ? `${shown(found.test / p.bestLinear)} of the best linear predictor’s: ${found.test < p.bestLinear ? "the step pays" : "it does not pay"}` : "beyond these formulas"}.`);
  }

  /** Where a table of heights passes through 0, as a path: a piece for each square of four known values. */
  function contour(values, X, Y) {
    const pieces = [];
    for (let j = 0; j + 1 < values.length; j++) {
      for (let k = 0; k + 1 < values[j].length; k++) {
        const corners = [[k, j], [k + 1, j], [k + 1, j + 1], [k, j + 1]].map(([a, b]) => [X(a), Y(b), values[b][a]]);
        if (corners.some(([, , value]) => value === null)) continue;
        const crossed = [];
        corners.forEach(([x, y, value], at) => {
          const [x2, y2, next] = corners[(at + 1) % 4];
          if (value < 0 === next < 0) return;
          const share = value / (value - next);
          crossed.push(`${(x + share * (x2 - x)).toFixed(1)},${(y + share * (y2 - y)).toFixed(1)}`);
        });
        for (let at = 0; at + 1 < crossed.length; at += 2) pieces.push(`M${crossed[at]}L${crossed[at + 1]}`);
      }
    }
    return pieces.join("");
  }

  // Numbers

  function numbers({ p, none, here, limit, best, stairs, now, every }) {
    const row = (name, value) => [name, shown(value?.train ?? null), shown(value?.test ?? null)];
    const rows = [row("no step", none), row(`the step marked, η = n^${state.alpha}`, here), row("the same as n → ∞", limit)];
    if (best.alpha === null) rows.push(["no step is best", shown(none.train), shown(none.test)]);
    else if (best.atEnd) rows.push(row(`where this formula ends: η = n^${shown(best.alpha)}`, best));
    else rows.push(row(`best step: η = n^${shown(best.alpha)}`, best));
    rows.push(["best linear predictor", "", shown(p.bestLinear)]);
    for (const stair of stairs) {
      rows.push([`gain of stair ${stair.order}: Δ${SUBSCRIPT[stair.order]}, Λ${SUBSCRIPT[stair.order]}`, shown(none.train - stair.train), shown(none.test - stair.test)]);
    }
    if (every) {
      const k = every.alpha.reduce((a, _, b) => (Math.abs(every.alpha[b] - state.alpha) < Math.abs(every.alpha[a] - state.alpha) ? b : a), 0);
      rows.push([`theory of every step at α = ${every.alpha[k]}`, shown(every.train[k]), shown(every.test[k])]);
      rows.push([`its best step: η = n^${shown(every.best.alpha)}`, "", shown(every.best.test)]);
    }
    const order = theory.born(state.alpha);
    const out = now ? `${now.values.length === ORDER ? `${ORDER} or more` : now.values.length || "No"} spike${now.values.length === 1 ? "" : "s"} of F out of a bulk that ends at ${shown(now.edge)}${now.values.length ? `, of size ${now.values.map(shown).join(", ")}` : ""}` : "Spikes: the step is beyond their formulas";
    return { rows, out: `${out}; as n → ∞ ${order ? `one for each power of z up to ${order} that σ has` : "none yet"}.` };
  }
  const SUBSCRIPT = "₀₁₂₃₄₅₆₇₈₉";

  function tell(p, found) {
    const { rows, out } = numbers(found);
    const sizes = `n = ${shown(p.n)}, d = ${shown(p.d)}, N = ${shown(p.N)}`;
    table.replaceChildren(
      element("caption", {}, `${sizes}; step η = ${shown(p.n ** state.alpha)}. ${out}`),
      element("thead", {}, element("tr", {}, element("td"), element("th", { scope: "col" }, "training loss"), element("th", { scope: "col" }, "test error"))),
      element("tbody", {}, ...rows.map(([name, ...values]) => element("tr", {}, element("th", { scope: "row" }, name), ...values.map((value) => element("td", {}, value))))),
    );
    clearTimeout(speaking);
    speaking = setTimeout(() => {
      const { here } = found;
      spoken.textContent = `${sizes}. ${here ? `Training loss ${shown(here.train)}, test error ${shown(here.test)}` : "The marked step is beyond the losses’ formulas"}. ${out}`;
    }, 700);
  }
  let speaking = 0;

  /** What gives the fixed-point theory and a simulation at this setting; no memory holds a simulation of the largest n. */
  function told({ n, d, N, ridge, noise }) {
    const { activation, c1, c2, c3 } = state;
    const eta = Number((n ** state.alpha).toPrecision(4));
    const whole = (value) => BigInt(value).toString();
    const words = [`--activation ${activation} --teacher 0 ${c1} ${c2} ${c3} --n ${whole(n)} --d ${whole(d)} --hidden ${whole(N)}`];
    words.push(`--ridge ${ridge} --noise ${noise} --eta ${eta}`, ...(n > 20000 ? ["--trials 0"] : []));
    command.textContent = `.venv/bin/python -m onestep ${words.join(" ")}`;
  }

  /** The settings in the page's address, where they are settings. */
  function addressed() {
    for (const [key, text] of new URLSearchParams(location.hash.slice(1))) {
      const found = CONTROLS.find((one) => one.key === key);
      const value = key === "activation" ? text : Number(text);
      const fits = key === "activation" ? Object.hasOwn(activations, text) : text !== "" && value >= found?.low && value <= found?.high;
      if (found && fits) change(key, value);
    }
  }

  /** All numbers of the present setting. */
  function compute() {
    const p = theory.problem(setting(state));
    const at = theory.losses(p);
    const upTo = (end, count) => Array.from({ length: count + 1 }, (_, k) => (Math.max(0, Math.min(0.5, end)) * k) / count);
    const spikes = upTo(theory.reach(p, theory.FARTHEST), 18).map((alpha) => [alpha, theory.spikes(p, alpha, ORDER)]);
    return {
      p,
      none: theory.untrained(p),
      curve: upTo(theory.reach(p), STEPS).map((alpha) => [alpha, at(alpha)]).filter(([, value]) => value),
      here: at(state.alpha),
      limit: theory.limit(p, state.alpha),
      stairs: theory.plateaus(p, ORDER),
      best: theory.bestStep(p, at),
      grid: spikes.filter(([, value]) => value),
      now: theory.spikes(p, state.alpha, ORDER),
      every: suggested("alpha")?.every,
    };
  }

  function draw() {
    waiting = 0;
    const found = compute();
    const { p, curve, grid } = found;
    tell(p, found);
    told(p);
    history.replaceState(null, "", `#${new URLSearchParams(state)}`);
    place.classList.toggle("empty", !(curve.length && grid.length));
    if (curve.length && grid.length) {
      loss(views.train, "train", found);
      loss(views.test, "test", found);
      spectrum(views.spikes, found);
      phases(views.phases, { p, every: suggested("alpha", "inputs")?.contour });
    }
  }

  const views = {
    train: picture("train", ["Blue: at this n, where the formulas hold. Grey: the stairs as n → ∞, each with one more power of the direction z. Triangle: no step."]),
    test: picture("test", ["The same; diamond: the best step on the curve. Green circles, at the suggestions: the theory of every step."]),
    spikes: picture("spikes", ["What stands out of the bulk can be seen. Dashed: where each power’s spike is born as n → ∞."]),
    phases: picture("phases", []),
  };
  const scaleBar = element("span", { class: "scale", "aria-hidden": "true" }, "½ ", ...shades.map((shade) => element("i", { style: `background: ${shade}` })), " 2");
  views.phases.figure.querySelector("figcaption").append(
    "Test error over the best linear predictor’s, ", scaleBar, ", at this n: yellow is low. Black: they are equal. Ring: your setting. Hatched: beyond these formulas. Above the dashed line, n > d²/20, untrained features learn curves as well, which is left out. Green: the black line by the theory of every step, at its suggestion.",
  );
  const table = element("table", { class: "numbers" });
  const command = element("code");
  const copy = element("button", { type: "button" }, "Copy");
  copy.addEventListener("click", () => navigator.clipboard.writeText(command.textContent));
  const asked = element("div", { class: "command" }, element("p", {}, "The fixed-point theory, which has no such end, and a simulation of this setting: ", copy), element("pre", {}, command));
  const spoken = element("p", { class: "visually-hidden", role: "status" });
  const form = element("form", { class: "controls", "aria-label": "Setting" }, ...CONTROLS.map(control));
  form.addEventListener("submit", (event) => event.preventDefault());
  const charts = element("div", { class: "charts" }, ...Object.values(views).map(({ figure }) => figure), element("div", { class: "table" }, table, asked));
  colors.forEach((color, k) => place.style.setProperty(`--color-${k}`, color));
  place.replaceChildren(form, charts, spoken);
  for (const button of document.querySelectorAll("button[data-try]")) button.addEventListener("click", () => suggest(button.dataset.try));

  window.explorer = { state, change, compute, draw, setting, suggest };
  suggest(Object.keys(suggestions)[0]);
  addressed();
  draw();
  new ResizeObserver(() => (waiting ||= requestAnimationFrame(draw))).observe(charts);
})();
