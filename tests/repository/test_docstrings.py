"""The public face names every parameter in a numpydoc section; that all have docstrings ruff checks."""

import inspect
import re

import pytest

import onestep
from onestep import simulate, theory

FACE = [
    onestep.Problem,
    onestep.study,
    *(getattr(theory, name) for name in ("losses", "best_step", "best_ridge", "gains", "traces")),
    *(getattr(simulate, name) for name in ("losses", "plateaus", "draw", "repeat")),
    onestep.report.Verdicts,
    onestep.estimates.Estimate,
]


@pytest.mark.parametrize("call", FACE, ids=lambda call: call.__qualname__)
def test_the_public_face_names_its_parameters_in_sections(call):
    section = re.search(r"Parameters\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)", inspect.getdoc(call), re.S)
    listed = {name.strip() for entry in re.findall(r"(?m)^(\S[^:\n]*)", section[1]) for name in entry.split(",")}
    assert not set(inspect.signature(call).parameters) - listed
