"""Three-stage training, simulated.

threestage  the three stages, on the population or on samples
landscape   plain gradient descent near the minimum, step by step
"""

from . import landscape, threestage
