from . import coverage, every_step, fixed_point, quadrature, random_features, spectra, staircase
from .coverage import uncalibrated
from .every_step import Best, best_ridge, best_step, learned, losses
from .random_features import best_linear, traces, untrained_limit
from .spectra import visible
from .staircase import gains, growth_ratio
