from . import estimates, hermite, report, simulate, theory
from .own_problem import Study, study
from .problem import Problem
