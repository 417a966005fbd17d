"""The second source: three-stage training of two-layer ReLU networks (Zhou & Ge, NeurIPS 2024, arXiv 2406.01766).

relu       teachers, and the population loss in closed form; what both sides share
theory/    the first step, the minimum as λ → 0, certificate, rates and threshold; never imports simulate/
simulate/  the three stages and gradient descent, on the population or on samples; never imports theory/
"""

from . import relu, simulate, theory
