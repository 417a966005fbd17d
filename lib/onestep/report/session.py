"""What all of a notebook's results share: the folder they go to, its parameters, and the figures written so far."""

import json
import os
import re
import sys
from pathlib import Path

_NAME = re.compile(r"\d\d_[a-z0-9_]+")
saved = {}  # the figures this session has written, by name, with what each shows


def directory():
    """Folder of figures and ledgers: $ONESTEP_FIGURES, else `build/figures` of a clone, else `figures` here."""
    here = Path.cwd()
    clones = [folder / "build/figures" for folder in (here, *here.parents) if (folder / "lib/onestep").is_dir()]
    path = Path(os.environ.get("ONESTEP_FIGURES") or next(iter(clones), "figures"))
    path.mkdir(parents=True, exist_ok=True)
    return path


def parameters():
    """The notebook's parameters as the runner announced them; empty in an interactive session."""
    return json.loads(os.environ.get("ONESTEP_PARAMETERS", "{}"))


def preset():
    """The runner's preset; by all but `default` it judges by the ledger. `quick` is too small for some rows."""
    return os.environ.get("ONESTEP_PRESET", "default")


def show(data):
    """Show text, tables or a picture, given by MIME type, in a notebook; elsewhere print the text."""
    IPython = sys.modules.get("IPython")  # imported by every kernel
    if IPython and IPython.get_ipython():
        IPython.display.display(data, raw=True)
    else:
        print(data["text/plain"])


def check_name(name):
    """ValueError for a name that is not two digits, an underscore and lower-case words."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"the name must be two digits, an underscore and lower-case words (14_gains), not {name!r}")


def rounded(x, significant=6):
    """x with so many significant digits; whole numbers stay as they are."""
    return x if isinstance(x, int) else float(f"{x:.{significant}g}")
