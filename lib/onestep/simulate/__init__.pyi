from . import averages, control_variates, data, every_step, network, staircase, svd
from .every_step import losses
from .network import direction, draw, features, gradient, residual, ridge, sample
from .replicates import Result, key, memory, repeat, replicated
from .staircase import plateaus, spiked
