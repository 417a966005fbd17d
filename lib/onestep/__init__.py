"""One gradient step, then ridge regression: theory and simulation of non-linear feature learning."""

from . import hermite, simulate, theory
from .problem import Problem

__all__ = ["Problem", "hermite", "simulate", "theory"]
