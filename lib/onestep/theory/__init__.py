"""What is predicted; `simulate` has a module of the same name that measures it, where nothing else is said.

random_features  the network before the step as d → ∞: effective ridge, traces m1 and m2, losses
staircase        plateaus Δ_ℓ and Λ_ℓ, thresholds, and losses while spikes are of finite strength
every_step       losses at the n and d at hand for every step from 0 to Θ(√n); the best step and the best ridge
fixed_point      its equations, module by module (theory alone, as quadrature)
second_step      outliers and directions after a second step, on the same batch or a fresh one
quadrature       rules, and the expansion in harmonics on the sphere
expansion        F_ℓ: sizes of its terms, of what it omits, and the quadratic forms
spectra          bulks and spikes of W and F
bulks            the bulks' laws: edge, density, largest value (theory alone)
covariance       untrained network and first stair of any preconditioner, for Gaussian inputs of any covariance
baselines        levels of linear regression and kernels
directions       what one giant step learns of several directions
"""

from . import (
    baselines,
    bulks,
    covariance,
    directions,
    every_step,
    expansion,
    fixed_point,
    quadrature,
    random_features,
    second_step,
    spectra,
    staircase,
)
from .covariance import untrained as untrained_limit
from .every_step import Best, best_ridge, best_step, learned, losses, untrained
from .expansion import forms, omitted, term
from .random_features import Losses, Traces, best_linear, traces
from .spectra import visible
from .staircase import boundary, gains, growth_ratio, thresholds
