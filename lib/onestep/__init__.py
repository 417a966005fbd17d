"""Feature learning with one gradient step in two-layer networks: one `Problem` feeds theory, simulation and notebooks.

    from onestep import Problem, theory, simulate

problem    one experiment, frozen; what every call takes
hermite    functions of a Gaussian variable: activations and teachers
theory/    what is predicted; never imports simulate/
simulate/  what is measured; never imports theory/. Twins bear one name: theory.staircase predicts what
           simulate.staircase measures. They meet in notebooks, in tests, and in study
own_problem  `study`: both for a problem or inputs of your own: losses, spikes, best step and ridge
__main__   the same from the command line
zhou_ge/   the second source, with a theory/ and a simulate/ of its own; imported when it is asked for
estimates  numbers with their standard errors, from replicates
report     what a notebook hands over: figures and verdicts
checks     arguments, memory and whole files
blas       how many threads linear algebra takes
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)  # each part when it is asked for

__version__ = "0.1.0"
