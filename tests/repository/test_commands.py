"""Commands and snippets that README, CONTRIBUTING and docs show: each is one that works."""

import re
import shlex
from pathlib import Path

import pytest

from onestep import own_problem, theory
from onestep.__main__ import parser
from runner import __main__ as runner
from runner import plan, project

ROOT = Path(__file__).parents[2]
PAGES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md")}
PAGES |= {f"docs/{path.name}": path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
CODE = re.compile(r"`([^`\n]+)`|^ {4}(\S.*)$", re.MULTILINE)
COMMANDS = sorted({(page, "".join(pair).split("  ")[0]) for page, text in PAGES.items() for pair in CODE.findall(text)})
MAKE = [(page, line) for page, line in COMMANDS if line.startswith("make ")]
RUNNER = [(page, line) for page, line in COMMANDS if re.search(r"python -m runner ", line)]
OWN = [(page, line) for page, line in COMMANDS if re.search(r"python -m onestep\b", line) and "…" not in line]
SCRIPTS = [(page, line) for page, line in COMMANDS if re.match(r"(\S*/)?python [^-]", line)]
SMALL = {
    "n=1000, d=300, N=500": "n=100, d=30, N=50",
    "n=600, d=": "n=150, d=",
}
SMALL |= {
    "trials=1000": "trials=4",
    "trials=100,": "trials=2,",
    "trials=20)": "trials=2)",
    "study(p)": "study(p, trials=2)",
}
SMALL |= {"N=400": "N=60", "0.5, 11)": "0.5, 3)"}


def planned(line):
    """Check that the runner would take this command; execute nothing."""
    words = shlex.split(line.partition("-m runner ")[2])
    settings = {
        name: value
        for k, word in enumerate(words)
        if word == "--set"
        for name, value in [runner._setting(words[k + 1])]
    }
    plan.plan(project.Project(ROOT), [word for word in words[:1] if word.isdigit()], "default", settings, "custom")


@pytest.mark.parametrize(("page", "line"), MAKE)
def test_make_knows_the_target_and_the_notebook(page, line):
    _, target, *settings = shlex.split(line)
    assert re.search(rf"(?m)^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8")), page
    for name, _, value in (setting.partition("=") for setting in settings):
        assert name in {"NB", "PRESET", "SEEDS", "SCHEDULER", "PYTHON", "DEPENDENCIES"}, page
        if name == "NB" and value.isdigit():
            assert list((ROOT / "notebooks").glob(f"{value}_*.ipynb")), page
        if name == "PRESET":
            assert value in plan.PRESETS


@pytest.mark.parametrize(("page", "line"), RUNNER)
def test_the_runner_takes_the_command(page, line):
    assert line.startswith(".venv/bin/python "), f"{page}: another python has no module runner"
    planned(line)


def test_a_setting_that_a_notebook_does_not_have_would_be_found():
    with pytest.raises(Exception, match="no parameter 'nothing'"):
        planned(".venv/bin/python -m runner 20 --set nothing=1")


@pytest.mark.parametrize(("page", "line"), OWN)
def test_the_command_for_a_problem_of_ones_own_takes_its_options(page, line):
    words = shlex.split(line.partition("-m onestep")[2])
    if words != ["--help"]:
        parser().parse_args(words)


@pytest.mark.parametrize(("page", "line"), SCRIPTS)
def test_scripts_are_there(page, line):
    assert (ROOT / line.split()[1]).exists(), page


def test_there_is_something_of_each_kind():
    assert min(map(len, (MAKE, RUNNER, OWN, SCRIPTS))) >= 1


@pytest.mark.filterwarnings("ignore::onestep.simulate.data.BeyondTheory")  # which the page speaks of
def test_the_snippets_of_the_page_on_own_problems_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for search in ("best_step", "best_ridge"):  # which have tests of their own
        monkeypatch.setattr(theory, search, lambda p, *_: theory.Best(2.0, p.ridge, 1.0, 1.0, False))
    monkeypatch.setattr(own_problem, "_POINTS", 3)
    text = "\n".join(re.findall(r"```python\n(.*?)```", PAGES["docs/use.md"], re.DOTALL))
    for large, small in SMALL.items():
        assert large in text, large
        text = text.replace(large, small)
    (tmp_path / "snippets.py").write_text(f"{text}\n")
    exec(compile(text, "use", "exec"), {"__name__": "snippets"})
