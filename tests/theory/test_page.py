"""docs/theory.md states equations, and each is held by a test that evaluates it in another way."""

import re
from pathlib import Path

THEORY = Path(__file__).parent
PAGE = (THEORY.parents[1] / "docs/theory.md").read_text(encoding="utf-8")
HELD_BY = {
    "(1), (2), (4)": ("quadrature.expansion_on_the_sphere_against_integrals",),
    "(3)": ("quadrature.harmonics_of_random_directions_are_kernels_of_the_stated_dimension",),
    "(5)": ("first_batch.first_batch_carries_the_law_of_residuals",),
    "(6), (7), (9)": ("first_batch.moments_of_the_first_batch_against_drawn_ones",),
    "(8), (43)": (
        "first_batch.what_a_first_batch_has_at_finite_d",
        "first_batch.two_batches_vary_as_drawn_ones_do",
    ),
    "(10)–(12), (14)": (
        "units.weights_have_the_predicted_norm_and_spread",
        "units.rows_grow_by_the_rest_of_the_gradient",
        "units.a_unit_s_own_output_changes_its_length",
        "units.the_full_output_leaves_a_spike_and_rows_without_their_part_along_the_readout",
    ),
    "(13)": ("units.coordinates_of_rows_have_the_moments_of_the_sphere_that_degree_3_needs",),
    "(15), (16)": (
        "units.covariance_of_spike_and_length",
        "units.lengths_without_the_coherent_scaling_of_rows",
        "units.with_the_full_output_lengths_follow_the_direction_of_the_readout",
    ),
    "(17)": ("units.means_over_units_to_the_next_order_in_1_over_d",),
    "(18)": (
        "units.spike_and_length_vary_together_as_in_a_network",
        "units.a_fourth_coefficient_lets_lengths_follow_the_square_of_the_spike",
    ),
    "(19)–(23), (25)–(27)": ("equations.map_against_an_explicit_first_batch",),
    "(24), (28), (29), (32)": ("equations.directions_against_an_explicit_first_batch",),
    "(30)": (
        "equations.degree_0_moves_with_the_spike_by_degree_1",
        "units.degree_0_and_degree_1_covary_by_length",
    ),
    "(31), (34)–(38)": ("equations.loss_is_the_solution_of_the_whole_linear_problem",),
    "(33)": ("equations.the_part_of_other_directions_in_the_linear_part_counts_once",),
    "(39)": ("equations.a_sample_left_out_has_its_residual_over_one_less_its_leverage",),
    "(40)": ("equations.test_error_is_the_derivative_of_the_training_loss",),
    "(41)": ("equations.equal_leverages_make_generalised_cross_validation",),
    "(42)": ("every_step.learned_coefficients_against_simulation",),
    "(44)": ("symmetries.property_holds_on_random_problems",),
    "(38)": (
        "units.units_of_one_readout_share_a_quadratic_form",
        "units.rows_stretch_by_the_mean_label_of_their_first_batch",
    ),
}


def numbers(cell):
    for low, high in re.findall(r"\((\d+)\)(?:–\((\d+)\))?", cell):
        yield from range(int(low), int(high or low) + 1)


def test_every_equation_is_held_by_a_test_that_exists():
    stated = sorted(int(number) for number in re.findall(r"\\tag\{(\d+)\}", PAGE))
    assert stated == list(range(1, len(stated) + 1))
    assert {number for equations in HELD_BY for number in numbers(equations)} == set(stated)
    for names in HELD_BY.values():
        for file, name in (named.split(".") for named in names):
            assert f"def test_{name}(" in (THEORY / f"test_{file}.py").read_text(encoding="utf-8"), (file, name)
