"""One notebook in a kernel of its own."""

import threading

import pytest

from runner.execution import NotebookFailed, execute


def test_a_kernel_that_dies_at_its_start_is_named(project, tmp_path):
    settings = {"PYTHONHOME": str(tmp_path / "nowhere")}
    with pytest.raises(NotebookFailed, match="its kernel was ended"):
        execute(project.write(), {}, {}, tmp_path, lambda: None, threading.Event(), settings)
