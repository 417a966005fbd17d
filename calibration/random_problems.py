"""The random problems of stated_errors.csv, by number, in the words of that table."""

from math import exp, log

import numpy as np

from onestep import Problem, hermite

# numbers from which problems have all defaults; were drawn after a first fit, with all defaults in every third; have
# c_3 != 0; have the full initial output; were drawn after the law was settled; have equal readout weights; are corners
FIRST, NEW, BENT, FULL, LAST, EQUAL, CORNERS = 180, 240, 300, 340, 380, 440, 480
ACTIVATIONS = ("shifted_relu", "shifted_relu", "softplus", "tanh", "erf", "tilted_sin", "gelu", "quadratic")
NAMED_TEACHERS = ("shifted_relu", "tanh", "softplus", "erf")
FIELDS = ("n", "d", "N", "ridge", "activation", "teacher", "noise")
FIELDS += ("first_layer", "initial_output", "readout", "step_samples")


def draw(number):
    """The fields of the random problem of this number, in words: a third without noise, a third with a linear teacher.

    In a corner most fields lie at an end of the range in which an error is stated, with probability .7.
    """
    rng = np.random.default_rng([40, number])

    def uniform(low, high):
        share = rng.random()
        return low + (high - low) * (round(share) if number >= CORNERS and rng.random() < 0.7 else share)

    def between(low, high):
        return float(f"{exp(uniform(log(low), log(high))):.3g}")

    n = round(between(100, 150) if rng.random() < 0.25 else between(150, 1000))
    d, N = max(10, round(n * between(0.05, 1.5))), round(n * between(0.2, min(3, 1500 / n)))
    ridge = between(1e-3, 4e-3) if rng.random() < 0.25 else between(4e-3, 1)
    activation = ACTIVATIONS[rng.integers(len(ACTIVATIONS))]
    if activation == "quadratic":
        activation = f"0 1 {uniform(-0.5, 0.5):.2f}"
    kind = rng.integers(3)
    bent = f"0 1 {uniform(-0.75, 0.75):.2f} {rng.choice([0, uniform(-0.5, 0.5)]):.2f}"
    teacher = ("0 1", bent, NAMED_TEACHERS[rng.integers(4)])[kind]
    noise = 0.0 if rng.random() < 1 / 3 else round(uniform(0, 1), 2)
    layer = ("sphere", "gaussian")[rng.integers(2)]
    output = ("negligible", "full")[rng.random() < 0.25]
    readout = "1 -1" if rng.random() < 0.15 else "gaussian"
    step_samples = round(n * between(0.5, 4)) if rng.random() < 0.15 else ""
    if BENT <= number < FULL:
        activation = ("tanh", "erf", "tilted_sin")[number % 3]
        output = ("negligible", "full")[rng.random() < 0.5]
    if FULL <= number < LAST:
        d, output = max(d, round(n * between((n / 0.03) ** 0.5 / n, 1.5))), "full"
    if EQUAL <= number < CORNERS:
        activation, readout = ("tanh", "erf")[number % 2], "1"
    if number >= CORNERS:
        d = max(d, 15)
        power, label_power = (hermite.function(law(word)).second_moment for word in (activation, teacher))
        ridge = float(f"{power * between(0.00252, 2.97):.3g}")
        noise = noise and float(f"{label_power**0.5 * uniform(0, 1.69):.3g}")
        step_samples = step_samples and round(n * between(0.5, 10))
    values = n, d, N, ridge, activation, teacher, noise, layer, output, readout, step_samples
    if FIRST <= number < NEW or (NEW <= number < BENT and number % 3 == 0):
        values = n, d, N, ridge, "shifted_relu", "0 1", 0.0, "sphere", "negligible", "gaussian", ""
    return dict(zip(FIELDS, map(str, values), strict=True))


def law(word):
    """What a word says of an activation, a teacher or a readout."""
    return tuple(map(float, word.split())) if word[0].isdigit() else word


def problem(fields):
    """The `Problem` of fields in words."""
    numbers = {name: float(fields[name]) for name in ("ridge", "noise")}
    numbers |= {name: int(fields[name]) if fields[name] else None for name in ("n", "d", "N", "step_samples")}
    laws = {name: law(fields[name]) for name in ("activation", "teacher", "readout")}
    return Problem(**numbers, **laws, first_layer=fields["first_layer"], initial_output=fields["initial_output"])
