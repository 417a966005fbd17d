"""The explorer's numbers against the library's, in a headless Chromium: `make site-test`, not part of `make test`."""

import json
import shlex
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize

from onestep import Problem, theory
from onestep.__main__ import parser
from website import explorer

PAGE = Path(__file__).parents[2] / "build/site/explorer.html"
CLOSE = 1e-6  # relative; closed forms agree to 1e-11
STAIRS = 4
SHARES = np.array([0.0, 0.3, 0.6, 0.9, 1.0])  # of the largest exponent
EXACT = 1e14  # units, up to which rounding in the library's own operator does not look like a spike

NUMBERS = """
((problems, spoil) => problems.map(({ activation, ...rest }) => {
  const setting = structuredClone({ ...rest, activation: EXPLORER.activations[activation] });
  spoil(setting);
  const p = theory.problem(setting);
  const at = theory.losses(p);
  const pair = ({ train, test }) => [train, test];
  const end = Math.min(0.5, theory.reach(p, theory.FARTHEST));
  return {
    reach: theory.reach(p),
    end,
    growth: p.growth,
    bestLinear: p.bestLinear,
    untrained: pair(theory.untrained(p)),
    losses: SHARES.map((share) => pair(at(share * theory.reach(p)))),
    boundary: pair(theory.limit(p, 0.25)),
    stairs: theory.plateaus(p, STAIRS).map((stair) => [stair.from, stair.to, ...pair(stair)]),
    best: theory.bestStep(p, at),
    spikes: SHARES.map((share) => theory.spikes(p, share * end)),
  };
}))(PROBLEMS, SPOIL)
"""


@pytest.fixture(scope="module", autouse=True)
def page(browser):
    browser.size(1280)
    browser.open(PAGE.as_uri())
    return browser


def problems(count, seed=20):
    """Random problems in the ranges of the page's controls, every second one with n < 10^7."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        inputs, hidden, ridge = np.exp(rng.uniform(np.log([0.02, 0.05, 1e-4]), np.log([2, 10, 10])))
        setting = {
            **{"activation": rng.choice(explorer.ACTIVATIONS).item(), "digits": rng.uniform(3, 7 if k % 2 else 48)},
            **{"inputs": inputs, "hidden": hidden, "ridge": float(ridge), "noise": rng.uniform(0, 2)},
            "teacher": rng.uniform([0, -1, -1], [1.5, 1, 1]).tolist(),
        }
        yield explorer.problem(setting)


def computed(browser, wanted, spoil="() => {}"):
    """What the page computes for these problems; `spoil` changes each setting first."""
    plain = [
        {"n": float(p.n), "d": float(p.d), "N": float(p.N), "ridge": p.ridge, "noise": p.noise}
        | {"teacher": p.teacher, "activation": p.activation}
        for p in wanted
    ]
    script = NUMBERS.replace("PROBLEMS", json.dumps(plain)).replace("SPOIL", spoil).replace("STAIRS", str(STAIRS))
    return browser.run(script.replace("SHARES", json.dumps(SHARES.tolist())))


def power(p, alpha):
    return exp(alpha * log(p.n))


def gap(found, expected):
    """Largest relative difference; infinite for other shapes."""
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    return np.max(np.abs(found / expected - 1), initial=0.0) if found.shape == expected.shape else np.inf


def gaps(p, found):
    """By how much a page's numbers are off the library's, by kind."""
    none = theory.untrained_limit(p)
    levels = np.array([none.train, none.test])
    spiked = theory.losses(
        p, [power(p, x) * (1 - 1e-12) for x in SHARES * found["reach"]], method="spiked", growing_rows=True
    )
    curve = np.column_stack([spiked.train, spiked.test])
    drops = np.array(found["untrained"]) - found["losses"]
    off = {
        "untrained": gap(found["untrained"], levels),
        "growth": gap(found["growth"], theory.growth_ratio(p)),
        "best linear": gap(found["bestLinear"], theory.best_linear(p)),
        "losses": gap(found["losses"], curve),
        "drops": np.max(np.abs(drops - (levels - curve)) / np.maximum(np.abs(levels - curve), 1e-6 * levels)),
        "best step": gap(found["best"]["test"], least(p, found["reach"])),
    }
    c = p.student.coefficients(STAIRS)
    stairs = next((k - 1 for k in range(1, STAIRS + 1) if c[k] == 0), STAIRS)
    gains = [theory.gains(p, k, growing_rows=True) for k in range(1, stairs + 1)]
    off["stairs"] = gap([row[2:] for row in found["stairs"][:stairs]], [levels - [g.train, g.test] for g in gains])
    if stairs > 1:
        below = theory.boundary(p, 2, growing_rows=True)
        off["boundary"] = gap(found["boundary"], levels - [below.train, below.test])
    births = np.array(theory.staircase.thresholds(STAIRS + 1))
    off["thresholds"] = np.max(np.abs(np.array(found["stairs"])[:, :2] - np.column_stack([births[:-1], births[1:]])))
    if p.N <= EXACT:
        steps = [power(p, x) for x in SHARES * found["end"]]
        values = theory.spectra.feature_spikes(p, steps, STAIRS).value
        off["spikes"] = max(
            gap(spike["values"], row[np.isfinite(row)]) for spike, row in zip(found["spikes"], values, strict=True)
        )
        edges = [theory.spectra.features(p, step).edge for step in steps]
        off["edge"] = gap([spike["edge"] for spike in found["spikes"]], edges)
    return off


def least(p, end):
    """The least test error on the curve, no step included."""

    def test(alpha):
        return theory.losses(p, power(p, alpha) * (1 - 1e-12), method="spiked", growing_rows=True).test

    grid = np.linspace(-end, end, 101)
    values = [test(x) for x in grid]
    k = int(np.argmin(values))
    around = (grid[max(k - 1, 0)], grid[min(k + 1, 100)])
    found = optimize.minimize_scalar(test, bounds=around, method="bounded", options={"xatol": 1e-8})
    return min(found.fun, *values, theory.untrained_limit(p).test)


def test_the_page_computes_what_the_library_computes(browser):
    wanted = list(problems(100))
    assert sum(p.N <= EXACT for p in wanted) > 50
    assert {p.activation for p in wanted} == set(explorer.ACTIVATIONS)
    worst = {}
    for p, found in zip(wanted, computed(browser, wanted), strict=True):
        for kind, off in gaps(p, found).items():
            if not off <= worst.get(kind, (0.0,))[0]:
                worst[kind] = off, p
    assert all(off < CLOSE for off, _ in worst.values()), worst


@pytest.mark.parametrize(
    ("spoil", "spoiled"),
    [
        ("activation.coefficients[1]", {"growth", "losses", "drops", "stairs", "spikes", "best step"}),
        ("teacher[1]", {"untrained", "growth", "losses", "drops", "stairs", "spikes", "best step"}),
        ("activation.tail", {"untrained", "losses", "drops", "stairs"}),
        ("activation.series[1][0]", {"spikes", "edge"}),
        ("ridge", {"untrained", "losses", "drops", "stairs"}),
    ],
)
def test_a_hundredth_off_is_noticed(browser, spoil, spoiled):
    wanted = [p for p in problems(40, seed=21) if p.N <= EXACT and p.teacher[1] > 0.5][:3]
    for p, found in zip(wanted, computed(browser, wanted, f"(setting) => {{ setting.{spoil} *= 1.01 }}"), strict=True):
        off = gaps(p, found)
        assert all(off[kind] > 10 * CLOSE for kind in spoiled), off


def test_spikes_far_beyond_the_library_are_their_limits(browser):
    p = Problem(10**40, 10**39, 2 * 10**39, 0.1, "tilted_sin", (0, 1, 0.4, 0.2))
    s, c = power(p, 0.3) * p.student.linear * (p.D / p.N) ** 0.5, p.student.coefficients(2)
    found = computed(browser, [p])[0]
    at = found["end"] * SHARES[2]
    s = power(p, at) * p.student.linear * (p.D / p.N) ** 0.5
    second = abs(c[2]) * s**2 * p.N**0.5 * (3 * (2 + (1 + theory.growth_ratio(p)) ** 2)) ** 0.5
    assert found["spikes"][2]["values"][:2] == pytest.approx([theory.term(p, power(p, at), 1), second], rel=1e-5)


@pytest.mark.parametrize("name", explorer.SUGGESTIONS)
def test_suggestions_show_the_librarys_numbers(browser, name):
    browser.run(f"document.querySelector('button[data-try={name}]').click(); explorer.draw()")
    setting = explorer.SUGGESTIONS[name]
    p = explorer.problem(setting)
    sizes = browser.run("(({n, d, N}) => [n, d, N])(explorer.setting(explorer.state))")
    assert sizes == [p.n, p.d, p.N]
    rows = browser.run("[...document.querySelectorAll('#explorer tbody tr')].map((row) => row.innerText.split(/\\t/))")
    table = {title.strip(): values for title, *values in rows}
    none, step = theory.untrained_limit(p), power(p, setting["alpha"])
    here = theory.losses(p, step, method="spiked", growing_rows=True)
    every = theory.losses(p, step)
    for title, losses in (
        ("no step", none),
        (f"the step marked, η = n^{setting['alpha']:g}", here),
        (f"theory of every step at α = {setting['alpha']:g}", every),
    ):
        assert [float(value) for value in table[title]] == pytest.approx([losses.train, losses.test], rel=6e-4)
    assert float(table["best linear predictor"][1]) == pytest.approx(theory.best_linear(p), rel=6e-4)


def test_every_control_has_a_name_and_changes_the_page(browser):
    fields = browser.run(
        "[...document.querySelectorAll('#explorer select, #explorer input')]"
        ".map((field) => field.labels[0]?.innerText || field.ariaLabel)"
    )
    assert len(fields) == 19
    assert all(fields)
    browser.run("explorer.suggest('stairs')")
    for key in browser.run("Object.keys(explorer.state)"):
        before, after = browser.run(
            f"""(() => {{
              const text = () => {{ explorer.draw(); return document.querySelector("#explorer .charts").innerText; }};
              const [before, field] = [text(), document.getElementById("explorer-{key}")];
              field.value = field.tagName === "SELECT" ? "tanh" : (Number(field.min) + Number(field.max)) / 2.2;
              field.dispatchEvent(new Event("input"));
              return [before, text()];
            }})()"""
        )
        assert before != after, key


def test_the_command_beside_the_curves_is_the_setting_of_the_moment(browser):
    for name, setting in explorer.SUGGESTIONS.items():
        browser.run(f"explorer.suggest('{name}'); explorer.draw()")
        program, *words = shlex.split(browser.run("document.querySelector('#explorer .command code').innerText"))
        assert (program, words[:2]) == (".venv/bin/python", ["-m", "onestep"])
        said, p = parser().parse_args(words[2:]), explorer.problem(setting)
        assert (said.n, said.d, said.hidden, said.ridge, said.noise) == (p.n, p.d, p.N, p.ridge, p.noise)
        assert (said.activation, tuple(map(float, said.teacher))) == ([p.activation], p.teacher)
        assert said.eta == pytest.approx([p.n ** setting["alpha"]], rel=1e-3)


def test_the_address_keeps_the_settings(browser):
    browser.run("explorer.suggest('pays'); explorer.change('ridge', 0.37); explorer.draw()")
    kept = browser.run("explorer.state")
    address = browser.run("location.href")
    browser.open("about:blank")  # an address that differs in its end alone loads nothing
    browser.open(address)
    assert browser.run("explorer.state") == kept
    browser.open("about:blank")
    browser.open(f"{PAGE.as_uri()}#ridge=-1&activation=none&alpha=0.2")  # what is no setting is left out
    assert browser.run("explorer.state") == browser.run("(explorer.suggest('stairs'), explorer.state)")


def test_the_end_of_the_closed_form_is_not_called_a_best_step(browser):
    browser.run("explorer.suggest('line'); explorer.change('ridge', 0.011); explorer.draw()")
    assert browser.run("explorer.compute().best.atEnd")
    assert "best step" not in browser.run("document.querySelector('#explorer .numbers').innerText")
    assert not browser.run("document.querySelector('#explorer-test path.best') !== null")


def test_the_keyboard_moves_a_slider(browser):
    browser.run("explorer.suggest('stairs'); document.getElementById('explorer-alpha').focus()")
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)
    assert browser.run("explorer.state.alpha") == pytest.approx(explorer.SUGGESTIONS["stairs"]["alpha"] + 0.005)


def test_settings_at_the_ends_of_the_controls_are_drawn(browser):
    ends = [
        (range_, end)
        for range_ in ("digits", "inputs", "hidden", "ridge", "noise", "c1", "c2", "c3", "alpha")
        for end in ("min", "max")
    ]
    browser.events.clear()
    for key, end in ends:
        says = browser.run(
            f"""(() => {{
              explorer.suggest("pays");
              const field = document.getElementById("explorer-{key}");
              field.value = field.{end};
              field.dispatchEvent(new Event("input"));
              explorer.draw();
              return document.querySelector("#explorer").innerHTML;
            }})()"""
        )
        assert "NaN" not in says, (key, end)
    assert not [event for event in browser.events if event["method"] == "Runtime.exceptionThrown"]
