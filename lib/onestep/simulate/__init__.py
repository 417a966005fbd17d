"""What is measured; `staircase` and `every_step` have twins of the same name in `theory` that predict it.

staircase        plateaus, spiked: untrained features plus spikes of infinite or given strength
every_step       losses after a real step of any size
network          one replicate by hand: draw, gradient, features, ridge
replicates       random streams, workers, memory
averages         exact means over x ~ N(0, I)
control_variates  control variates: statistics of a draw with known means
data             own inputs: rows or a sampler to draw from
svd              the operator norm of a large matrix without a dense decomposition

What docstrings of functions do not repeat: p is a `Problem`, eta a step size >= 0 or an array of them, rng a numpy
Generator; every function that returns a `Result` takes trials, seed, jobs and executor, as in `repeat`, and its
docstring says which arrays the result holds. Bad arguments raise ValueError with the argument's name, its value and
what is allowed, and so does too little memory, before anything is drawn.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)  # each part when it is asked for
