"""One notebook through papermill: a kernel of this very interpreter, its cost metered, its output scrubbed."""

import json
import os
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec
from jupyter_core.utils import ensure_event_loop
from nbclient.exceptions import DeadKernelError
from papermill import PapermillExecutionError, execute_notebook
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook
from traitlets.config import Config

GIB = 2**30


class NotebookFailed(Exception):
    """A cell raised, or the kernel died; the message says which and why."""


@dataclass(frozen=True)
class Run:
    """An executed notebook with what it cost: seconds by the clock, CPU seconds, and memory at its peak."""

    notebook: nbformat.NotebookNode
    seconds: float
    cpu: float
    peak_gib: float


def execute(source, parameters, in_force, figures, on_cell, stop, settings=None):
    """Execute one notebook and return the `Run`; nothing is written but what the notebook itself puts into `figures`.

    Parameters
    ----------
    source : path of the notebook; its folder is the working directory
    parameters : values that replace those of the cell tagged `parameters`; none leaves the notebook as it is
    in_force : all parameters by name, for the ledger and the stored numbers
    figures : folder for the figures and the ledger
    on_cell : called after each cell
    stop : threading.Event that, once set, ends the kernel and with it the run
    settings : further environment variables of the kernel

    Raises NotebookFailed.
    """
    notebook = load_notebook_node(str(source))
    if parameters:  # checked by `Notebook`; papermill's own reader stumbles over a comment that holds an "="
        notebook = parameterize_notebook(notebook, parameters, kernel_name="python3", language="python")
    started = time.monotonic()
    # Unix sockets need a short path, which TMPDIR does not promise.
    short = tempfile.gettempdir() if len(tempfile.gettempdir()) < 50 else "/tmp"
    with tempfile.TemporaryDirectory(prefix="onestep-", dir=short) as folder:
        meter = _Meter(stop)
        try:
            done = execute_notebook(
                notebook,
                None,
                engine_name=_Engine.name,
                kernel_name="python3",
                progress_bar=False,
                folder=Path(folder),
                kernel_cwd=str(Path(source).parent),
                kernel_env=_environment(folder, figures, in_force) | (settings or {}),
                meter=meter,
                on_cell=on_cell,
            )
        except DeadKernelError as error:
            raise NotebookFailed("its kernel was ended from outside: perhaps the memory ran out") from error
        except PapermillExecutionError as error:
            where = f"cell {error.exec_count}, which begins {error.source.strip().splitlines()[0]!r}"
            raise NotebookFailed(f"{where}, raised {error.ename}: {error.evalue}") from error
        finally:
            meter.finish()
            ensure_event_loop().close()  # this thread's own, which the client opens and leaves open
    return Run(scrub(done), time.monotonic() - started, meter.cpu, meter.peak / GIB)


def scrub(notebook):
    """Remove from an executed notebook all that differs between two equal runs: timings, versions, paths, chance ids.

    Text, code, results, tags and the hand-written cell ids stay.
    """
    for cell in notebook.cells:
        tags = cell.metadata.get("tags")
        cell.metadata = {"tags": tags} if tags else {}
        if tags and "injected-parameters" in tags:
            cell.id = "injected-parameters"
        if cell.cell_type == "code":
            cell.outputs = _merged(cell.outputs)
            for output in cell.outputs:
                if "metadata" in output:
                    output.metadata = {}
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return nbformat.from_dict(notebook)


class Kernel(AsyncKernelManager):
    """Starts this interpreter, whatever a kernel named python3 may mean elsewhere on the machine."""

    @property
    def kernel_spec(self):
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=command, display_name="Python 3", language="python")


class _Engine(NBClientEngine):
    name = "onestep"

    @classmethod
    def execute_managed_notebook(
        cls, nb_man, kernel_name, *, folder, kernel_cwd, kernel_env, meter, on_cell, start_timeout, **_
    ):
        # Over TCP two kernels can race for one port, and ipykernel warns at each start.
        sockets = {"transport": "ipc", "ip": str(folder / "kernel"), "connection_file": str(folder / "kernel.json")}
        client = PapermillNotebookClient(
            nb_man,
            kernel_manager_class=Kernel,
            kernel_name=kernel_name,
            config=Config({"Kernel": sockets}),
            startup_timeout=start_timeout,
            timeout=None,
            shutdown_kernel="immediate",
            on_notebook_start=None,
            on_cell_executed=lambda **_: on_cell(),
            on_cell_start=lambda **_: meter.watch(client.km.provisioner.pid),
        )
        try:
            client.execute(cwd=kernel_cwd, env=kernel_env)
        except RuntimeError as error:
            if "Kernel died" in str(error):  # at its start, where it has no exception of its own
                raise DeadKernelError(str(error)) from error
            raise


papermill_engines.register(_Engine.name, _Engine)


class _Meter:
    """Samples memory and CPU time of a kernel while it runs, and ends it if asked to stop."""

    def __init__(self, stop):
        self.peak, self.cpu, self._process, self._stop = 0, 0.0, None, stop
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def watch(self, pid):
        if self._process is None:
            self._process = psutil.Process(pid)
            self._thread.start()

    def finish(self):
        self._finished.set()
        if self._process is not None:
            self._thread.join()

    def _sample(self):
        while not self._finished.wait(0.1):
            if self._stop.is_set():
                os.killpg(self._process.pid, signal.SIGKILL)  # a kernel leads a process group of its own
                return
            try:
                self.peak = max(self.peak, self._process.memory_info().rss)
                self.cpu = sum(self._process.cpu_times()[:2])
            except psutil.NoSuchProcess:
                return


def _environment(folder, figures, in_force):
    """The kernel's environment: one BLAS thread per process, figures inline, and no personal IPython start-up files."""
    library = str(Path(__file__).resolve().parents[1])
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    return {
        **os.environ,
        **dict.fromkeys(threads, "1"),
        "IPYTHONDIR": str(folder),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "ONESTEP_FIGURES": str(figures),
        "ONESTEP_LEDGER_ONLY": "1",
        "ONESTEP_PARAMETERS": json.dumps(in_force),
        "PYTHONPATH": os.pathsep.join(filter(None, [library, os.environ.get("PYTHONPATH")])),
    }


def _merged(outputs):
    """Join neighbouring pieces of one stream: where a stream is cut depends on timing."""
    merged = []
    for output in outputs:
        last = merged[-1] if merged else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            merged.append(output)
    return merged
