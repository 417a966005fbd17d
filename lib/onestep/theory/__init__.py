"""What is predicted; most modules have one of the same name in `simulate` that measures it.

random_features  the network before the step as d → ∞: effective ridge, traces m1 and m2, losses
staircase        plateaus Δ_ℓ and Λ_ℓ, and losses while spikes are of finite strength
every_step       losses at the n and d at hand for every step from 0 to Θ(√n); the best step and the best ridge
coverage         which problems it covers, and for which an error is stated
fixed_point      its equations, module by module (theory alone, as quadrature)
quadrature       rules, and the expansion in harmonics on the sphere
spectra          bulks of W and F, spikes of F (theory alone: notebooks measure them)
"""

from . import coverage, every_step, fixed_point, quadrature, random_features, spectra, staircase
from .coverage import uncalibrated
from .every_step import Best, best_ridge, best_step, learned, losses
from .random_features import Losses, Traces, best_linear, traces
from .random_features import untrained as untrained_limit
from .spectra import visible
from .staircase import gains, growth_ratio
