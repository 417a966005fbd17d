"""What is predicted; most modules have one of the same name in `simulate` that measures it.

random_features  the network before the step as d → ∞: effective ridge, traces m1 and m2, losses
staircase        plateaus Δ_ℓ and Λ_ℓ, and losses while spikes are of finite strength
every_step       losses at the n and d at hand for every step from 0 to Θ(√n); the best step and the best ridge
coverage         which problems it covers, and for which an error is stated
fixed_point      its equations, module by module (theory alone, as quadrature)
quadrature       rules, and the expansion in harmonics on the sphere
spectra          bulks of W and F, spikes of F (theory alone: notebooks measure them)
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)  # each part when it is asked for
