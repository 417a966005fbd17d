"""Feature learning with one gradient step in two-layer networks: one `Problem` feeds theory, simulation and notebooks.

    from onestep import Problem, theory, simulate

Submodules load on first use, so that commands which need none of the numerics start at once.
"""

from importlib import import_module

_SUBMODULES = (
    "baselines",
    "bulk",
    "equivalence",
    "hermite",
    "multiindex",
    "observe",
    "overlap",
    "problem",
    "randomfeatures",
    "regimes",
    "report",
    "scaling",
    "simulate",
    "spectrum",
    "theory",
    "threestage",
    "uniform",
)
__all__ = ["Problem", *_SUBMODULES]


def __getattr__(name):
    if name == "Problem":
        return import_module(".problem", __name__).Problem
    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
