"""What is predicted, room by room; each has a twin in `simulate` that measures it.

random_features  the network before the step: effective ridge, traces m1 and m2, losses
staircase        plateaus Δ_ℓ and Λ_ℓ, thresholds, and losses while spikes are of finite strength
every_step       losses for every step from 0 to Θ(√n); the best step and the best ridge
equivalent       the Gaussian features whose fixed point every_step solves (without a twin)
expansion        F_ℓ: sizes of its terms, of what it omits, and the quadratic forms
spectra          bulks and spikes of W and F
rivals           levels of linear regression, kernels and single neurons
directions       what one giant step learns of several directions
threestage       the first step's features, and the minimum that training both layers ends in
landscape        its certificate, rates, stuck states and the count of signs
"""

from . import (
    directions,
    equivalent,
    every_step,
    expansion,
    landscape,
    random_features,
    rivals,
    spectra,
    staircase,
    threestage,
)
from .every_step import Best, best_ridge, best_step, losses
from .expansion import forms, omitted, term
from .random_features import Losses, Traces, best_linear, printed_system, traces, untrained
from .staircase import boundary, gains, growth_ratio, spikes, thresholds
