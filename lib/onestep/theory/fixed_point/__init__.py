"""The fixed point behind `every_step`, whose equations docs/theory.md derives; comments cite its numbers.

first_batch  the law of the residuals in the step, M, C, β and their traces, eq. (5) to (9), (41) and (43)
units        rows after the step: spike, length and covariance on nodes, eq. (10) to (18)
nodes        the equivalent features m_k on nodes of inputs and units, eq. (1) to (4); what the theory leaves out
degree_one   the linear problem with the first batch eliminated, eq. (22) to (29), (32) and (33)
equations    κ, q and the traces in one map, eq. (19) to (21); the training loss, eq. (30), (31), (34) to (36), (44)
solver       the iteration, refined quadrature, the test error as a derivative, eq. (37) to (40)
plane        rows where the teacher's quadratic part is no small part of its linear part, eq. (45) and (46)
plane_loss   the training loss there, eq. (47) to (49)

Symbols of the document and where they are in the code:

- κ_μ, q_u: `Solution.kappa`, `Solution.q`: leverage ratio h/(1 - h) of a sample, diagonal of the resolvent at a unit
- S: `Solution.S`: self-energy of the pencil
- g_μ: `Pencil.g`: weight p_μ/(1 + κ_μ) of a node
- m_k(u, μ): `Features.m`, `Features.modes`: feature of degree k, and its leading modes
- Q_0⁻¹, G, Ỹ: `Pencil.Q0_inverse`, `.G`, `.Y_tilde`: the pencil, its deterministic equivalent, dressed weights
- R_ab, V_a, Ξ: `Directions.R`, `.V`, `Xi`: forms of T along known directions without β̂, and of β̂
- u, t, v: `spike`, `t`, `v` in `units.rows`: spike, weight of M, weight of C
"""

from . import degree_one, equations, first_batch, nodes, solver, units
from .degree_one import Directions, Pencil, directions, linear_traces, pencil, saturation, strengths
from .equations import degree_blocks, training_loss, update
from .nodes import Features, Modes, Solution, features, fluctuation, modes
from .solver import Family, family, iterate, learned_at, losses_at
