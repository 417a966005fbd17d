"""How many threads BLAS takes: one, as matrices are small and replicates run side by side."""

from contextlib import contextmanager, nullcontext
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

_limiting = Lock()


@contextmanager
def one_thread():
    """BLAS on one thread; a decorator, too. Of calls that overlap the first sets the limit and lifts it as it ends."""
    mine = _limiting.acquire(blocking=False)
    try:
        with _controller().limit(limits=1, user_api="blas") if mine else nullcontext():
            yield
    finally:
        if mine:
            _limiting.release()


@cache
def _controller():
    return ThreadpoolController()  # looks through all loaded libraries, which takes a millisecond
