"""One source of truth: what is imported, what pyproject.toml declares, what the lock pins and what conda installs."""

import ast
import functools
import json
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import onestep

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, TOOL = PYPROJECT["project"], PYPROJECT["tool"]
SUPPORTED = ["3.11", "3.12", "3.13"]

OPTIONAL = {"session.py": {"ipython"}, "replicates.py": {"distributed"}}  # imported where they are needed, if there
TOOLS = {  # declared, but called by name instead of imported
    "ipykernel": "the notebooks' kernel",
    "jupyterlab": "make notebooks",
    "nbval": "make test",
    "pytest-xdist": "make test, in parallel",
    "ruff": "make lint",
}


def declared(*extras):
    lines = list(PROJECT["dependencies"])
    for extra in extras or PROJECT["optional-dependencies"]:
        lines += PROJECT["optional-dependencies"][extra]
    return {canonicalize_name(requirement.name): requirement for requirement in map(Requirement, lines)}


def pinned(lock="requirements.txt"):
    lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.lstrip().startswith("#")]


@functools.cache
def distributions():
    """Which distributions provide each module; reading them anew for every cell would take half a minute."""
    return packages_distributions()


def imported(code):
    """Distributions that provide the modules which a piece of Python imports."""
    modules = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            modules.add(node.module.split(".")[0])
    own = {"conftest", "onestep", "runner", "website", *(path.stem for path in (ROOT / "benchmarks").glob("*.py"))}
    foreign = modules - set(sys.stdlib_module_names) - own
    providers = distributions()
    unknown = foreign - set(providers)
    assert not unknown, f"nothing installed provides {unknown}"
    return {canonicalize_name(providers[module][0]) for module in foreign}


def sources(*folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.read_text(encoding="utf-8")
        for path in sorted((ROOT / folder).glob("*.ipynb")):
            for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
                if cell["cell_type"] == "code":
                    yield "".join(cell["source"])


def all_imports(*folders):
    return set().union(*map(imported, sources(*folders)))


def test_every_import_is_declared_and_every_declaration_used():
    folders = ("lib", "tests", "benchmarks", "notebooks", "tools", ".ci")
    used = all_imports(*folders) | imported((ROOT / "conftest.py").read_text())
    assert used | set(TOOLS) == set(declared())


def test_the_numerics_need_the_bare_dependencies_only():
    allowed = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    for path in (ROOT / "lib/onestep").rglob("*.py"):
        extra = imported(path.read_text(encoding="utf-8")) - allowed
        assert extra <= OPTIONAL.get(path.name, set()), path


@pytest.mark.parametrize("python", SUPPORTED)
def test_the_lock_satisfies_what_is_declared(python):
    pins = {}
    for pin in pinned():
        where = {"python_version": python, "python_full_version": f"{python}.9", "sys_platform": "linux", "extra": ""}
        if pin.marker is None or pin.marker.evaluate(where):
            assert canonicalize_name(pin.name) not in pins, f"{pin.name} is pinned twice on {python}"
            pins[canonicalize_name(pin.name)] = pin
    for name, requirement in declared().items():
        (specifier,) = pins[name].specifier
        assert specifier.operator == "=="
        assert requirement.specifier.contains(specifier.version), f"{name} {specifier.version} is outside {requirement}"


def test_the_site_has_a_lock_of_its_own():
    wanted = {canonicalize_name(name) for name in (ROOT / ".ci/site.in").read_text().split()}
    assert wanted <= {canonicalize_name(pin.name) for pin in pinned(".ci/site.txt")}


@pytest.mark.parametrize("lock", ["requirements.txt", ".ci/site.txt"])
def test_the_locks_name_no_place_to_download_from(lock):
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert not re.search(r"https?://|file:|--(extra-)?index-url|--find-links", text)


def test_conda_installs_the_same_lock():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    python, pip, packages = environment["dependencies"]
    assert python.split("=")[1] in SUPPORTED
    assert pip == "pip"
    assert packages == {"pip": ["-r requirements.txt", "-e ."]}


def test_one_version_is_stated_and_repeated_where_it_is_cited():
    assert PROJECT["dynamic"] == ["version"]
    assert TOOL["setuptools"]["dynamic"]["version"] == {"attr": "onestep.__version__"}
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == onestep.__version__
    assert f"version = {{{onestep.__version__}}}" in (ROOT / "docs/use.md").read_text(encoding="utf-8")


def test_continuous_integration_covers_the_supported_versions():
    text = (ROOT / ".github/workflows/checks.yml").read_text(encoding="utf-8")
    matrix = yaml.safe_load(text)["jobs"]["checks"]["strategy"]["matrix"]
    assert matrix["python"] == SUPPORTED
    assert matrix["dependencies"] == ["locked"]
    assert [lane["dependencies"] for lane in matrix["include"]] == ["newest"]
    assert PROJECT["requires-python"] == f">={SUPPORTED[0]}"


def test_one_lane_reproduces_the_committed_results_with_the_kernels_of_another_processor():
    text = (ROOT / ".github/workflows/checks.yml").read_text(encoding="utf-8")
    lane = yaml.safe_load(text)["jobs"]["processor"]
    assert set(lane["env"]) >= {"OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES"}
    commands = [step["run"] for step in lane["steps"] if "run" in step]
    assert commands == ["make figures", "git diff --exit-code", "make test"]
