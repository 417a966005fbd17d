"""One notebook file: its cells, its parameters and the values they may take."""

import ast
import hashlib
import json
import operator
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_RANGE = re.compile(r"(≥|≤|>=|<=|>|<)\s*([-+]?[\d.]+(?:e[-+]?\d+)?)(?=\s*(?:,|$|≥|≤|>|<))")
_COMPARE = {
    "≥": operator.ge,
    ">=": operator.ge,
    "≤": operator.le,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class UserError(Exception):
    """Something asked for that cannot be done; the message says what and why."""


@dataclass(frozen=True)
class Notebook:
    """A notebook file, read without the notebook libraries: they take longer to import than a run with no change."""

    path: Path

    @property
    def name(self):
        return self.path.stem

    @cached_property
    def cells(self):
        return json.loads(self.path.read_text(encoding="utf-8"))["cells"]

    @property
    def code_cells(self):
        """How many cells will be executed."""
        return sum(cell["cell_type"] == "code" for cell in self.cells)

    @cached_property
    def parameters(self):
        """Default values by name, from the cell tagged `parameters`."""
        return {name: value for name, (value, _) in self._assignments.items()}

    def check(self, overrides):
        """Raise UserError for an unknown name, a type other than the default's, or a number outside its range."""
        for name, value in overrides.items():
            if name not in self._assignments:
                raise UserError(f"{self.name} has no parameter {name!r}; it has {', '.join(self.parameters)}")
            default, comment = self._assignments[name]
            if not _same_type(value, default):
                wanted = f"{_type_name(default)} like its default {default!r}"
                raise UserError(f"{self.name}: parameter {name} must be {wanted}, not {value!r}")
            for sign, bound in _RANGE.findall(comment):
                for number in _flat(value):
                    if not _COMPARE[sign](number, float(bound)):
                        raise UserError(f"{self.name}: parameter {name} must be {sign} {bound}, not {value!r}")

    def key(self, overrides, environment):
        """Digest of all that decides the results: the cells' text, the parameters, and the library's `environment`."""
        text = [[cell["cell_type"], cell["source"], cell["metadata"].get("tags")] for cell in self.cells]
        return digest(json.dumps([text, overrides, environment], sort_keys=True, ensure_ascii=False).encode())

    def code(self, overrides):
        """Digest of the code cells and the parameters alone."""
        text = [cell["source"] for cell in self.cells if cell["cell_type"] == "code"]
        return digest(json.dumps([text, overrides], sort_keys=True, ensure_ascii=False).encode())

    @cached_property
    def _assignments(self):
        tagged = [cell for cell in self.cells if "parameters" in cell["metadata"].get("tags", [])]
        if len(tagged) != 1:
            raise UserError(f"{self.name} must have one cell tagged parameters, not {len(tagged)}")
        source = "".join(tagged[0]["source"])
        lines = source.splitlines()
        found = {}
        for statement in ast.parse(source).body:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
            if not isinstance(target, ast.Name):
                raise UserError(f"{self.name}: {ast.unparse(statement)!r} among the parameters is not `name = value`")
            try:
                value = ast.literal_eval(statement.value)
            except ValueError:
                message = f"{self.name}: parameter {target.id} must be a literal: a number, a text or a list"
                raise UserError(message) from None
            comment = lines[statement.end_lineno - 1][statement.end_col_offset :]
            found[target.id] = value, comment
        return found


def _flat(value):
    """All numbers of a value that may be a list of lists."""
    return [x for item in value for x in _flat(item)] if isinstance(value, list | tuple) else [value]


def _same_type(value, default):
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, float):
        return isinstance(value, int | float)
    if isinstance(default, list | tuple):
        return isinstance(value, list | tuple) and all(not default or _same_type(item, default[0]) for item in value)
    return isinstance(value, type(default))


def _type_name(default):
    if isinstance(default, list | tuple):
        return f"a list of {type(default[0]).__name__}" if default else "a list"
    return {"int": "a whole number", "float": "a number", "str": "a text"}.get(type(default).__name__, "True or False")


def digest(data):
    return hashlib.sha256(data).hexdigest()
