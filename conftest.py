"""How notebooks are compared: numbers with a tolerance, all else to the letter; nothing committed is overwritten."""

import os
import shutil
import tempfile
from pathlib import Path

from run_notebook import presets
from same import first_difference


class NumericText(str):
    """Text that equals another with the same words and numbers that agree: what nbval is given to compare."""

    __hash__ = str.__hash__

    def __eq__(self, other):
        return first_difference(self, other) is None if isinstance(other, str) else NotImplemented

    def __ne__(self, other):
        return not self == other


def pytest_configure(config):
    # A BLAS that spins on every core makes parallel tests many times slower; set before numpy is imported.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        os.environ[name] = "1"
    os.environ.pop("MPLBACKEND", None)  # so that kernels show figures inline, and tests draw without a screen
    config.scratch = tempfile.mkdtemp(prefix="onestep-")
    os.environ["ONESTEP_FIGURES"] = str(Path(config.scratch, "figures"))
    os.environ["IPYTHONDIR"] = str(Path(config.scratch, "ipython"))
    if getattr(config.option, "nbval", False):
        _prepare_nbval(config)


def pytest_collection_modifyitems(items):
    """Notebooks first, the longest at the head: started last, one of them would run alone at the end."""
    items.sort(key=lambda item: -presets()["seconds"].get(item.path.stem, 0))


def pytest_unconfigure(config):
    shutil.rmtree(config.scratch, ignore_errors=True)


def _prepare_nbval(config):
    import nbval.kernel
    from nbval.plugin import IPyNbCell

    exact = IPyNbCell.sanitize

    def numeric(cell, text):
        return NumericText(exact(cell, text)) if isinstance(text, str) else text

    IPyNbCell.sanitize = numeric
    # Unix sockets for the kernels: over TCP two of them can race for one port, and ipykernel warns at each start.
    manager = nbval.kernel.KernelManager

    def over_sockets(**options):
        folder = tempfile.mkdtemp(dir=config.scratch)
        return manager(transport="ipc", ip=f"{folder}/k", connection_file=f"{folder}/k.json", **options)

    nbval.kernel.KernelManager = over_sockets
