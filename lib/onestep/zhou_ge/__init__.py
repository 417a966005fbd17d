"""The second source: three-stage training of two-layer ReLU networks (Zhou & Ge, NeurIPS 2024, arXiv 2406.01766).

relu      teachers, and the population loss in closed form; what both sides share
theory    the minimum of the regularised loss, as λ → 0 and exactly, with its dual certificate; never imports simulate
simulate  the three stages and gradient descent, on the population or on samples; never imports theory

A student f(x) = Σ_i a_i ReLU(w_iᵀx) has the second layer a (..., m) and the first layer W (..., m, d) of rows w_i;
several students may lie along leading axes. teacher is a `relu.Teacher`. system, a `relu.Population` or
`simulate.Empirical`, has the loss L and its gradients; ridge is λ >= 0 in L_λ = L + (λ/2)(‖a‖² + ‖W‖²). Preprocessing
takes the mean and the linear part out of the target, and an affine term that is always fitted out of the student.
"""

from . import relu, simulate, theory
