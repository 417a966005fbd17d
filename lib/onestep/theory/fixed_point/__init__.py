"""The fixed point behind `every_step`, whose equations docs/theory.md derives; comments cite its numbers.

first_batch  the law of the residuals in the step, M, C, β and their traces, eq. (5) to (9) and (43)
units        rows after the step: spike, length and covariance on nodes, eq. (10) to (18)
nodes        the equivalent features m_k on nodes of inputs and units, eq. (1) to (4) and (23)
equations    the pencil, κ and q in one map, and the training loss, eq. (19) to (38)
solver       the iteration, refined quadrature, the test error as a derivative, eq. (39) to (42)

Symbols of the document: κ_μ, q_u, S are `Solution.kappa`, `.q`, `.S`; g_μ, Q_0⁻¹, G, Ỹ are `Pencil.g`, `.Q0_inverse`,
`.G`, `.Y_tilde`; m_k is `Features.m`, R_ab, V_a `Directions.R`, `.V`; u, t, v are `spike`, `t`, `v` in `units.rows`.
"""

from . import equations, first_batch, nodes, solver, units
from .equations import directions, pencil, training_loss, update
from .nodes import features
from .solver import family, iterate, losses_at
