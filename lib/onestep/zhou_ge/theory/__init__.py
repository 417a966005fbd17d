"""Three-stage training, predicted.

threestage  the first step's features, and the minimum as λ → 0
landscape   the dual certificate, rates, the threshold and the count of signs
"""

from . import landscape, threestage
