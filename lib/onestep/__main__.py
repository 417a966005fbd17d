"""Your own problem from the command line: `python -m onestep --activation tanh --teacher 0 1 0.5 --n 1000 --d 500`.

An activation or teacher is a name, Hermite coefficients, or `module:name`: a function, or `hermite.Function`, in a
Python file of yours. A formula typed on the command line would have to be evaluated there, could not say where it has
kinks, and would need quoting: a file of two lines is safer, and is read by Python alone.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from contextlib import suppress
from decimal import Decimal
from functools import partial

from . import checks, hermite
from .own_problem import read_rows, study
from .problem import FIRST_LAYERS, INITIAL_OUTPUTS, Problem


def main(arguments=None):
    """The command; returns its exit status: 0, or 2 for bad input, 1 when theory does not converge."""
    options = parser().parse_args(arguments)
    try:
        if options.prepare and options.data is None:
            raise ValueError(f"--prepare {options.prepare}: belongs to --data")
        if options.save is not None:
            checks.folder("--save", options.save)
        data = None if options.data is None else read_rows(options.data, options.prepare)
        p = Problem(
            options.n,
            data.d if data else options.d,
            options.hidden,
            ridge=options.ridge,
            activation=_function("--activation", options.activation, options.centre),
            teacher=_function("--teacher", options.teacher, options.centre),
            noise=options.noise,
            first_layer=options.first_layer,
            initial_output=options.initial_output,
        )
        tell = partial(print, file=sys.stderr, flush=True)
        found = study(p, options.eta, trials=options.trials, seed=options.seed, jobs=options.jobs, tell=tell, data=data)
        try:
            print(found, flush=True)
        finally:
            if options.save is not None:
                found.save(options.save)
    except (ValueError, ArithmeticError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1 if isinstance(error, ArithmeticError) else 2
    except KeyboardInterrupt:
        return 130
    return 0


def parser():
    """The command line: what may be said, and what stands where nothing is."""
    out = argparse.ArgumentParser(
        prog="python -m onestep",
        description="Predict and simulate one gradient step on your own problem: losses at a handful of steps, "
        "visible spikes, the best step and the best ridge.",
    )

    def add(flag, *, help, **rest):
        if "default" in rest:
            default = rest["default"]
            help += f" (default: {' '.join(default) if isinstance(default, list) else default})"
        out.add_argument(flag, help=help, **rest)

    names = ", ".join(hermite.NAMED)
    one = f"a name ({names}; each less its Gaussian mean), Hermite coefficients c_0 c_1 …, or module:name of your own"
    add("--activation", nargs="+", default=["shifted_relu"], metavar="A", help=f"{one}, of Gaussian mean 0")
    add("--teacher", nargs="+", default=["0", "1"], metavar="T", help="likewise")
    add("--centre", action="store_true", help="subtract the Gaussian mean of your own activation and teacher")
    add("--data", metavar="FILE.npz", help="own inputs: arrays X (rows, d) and, if you like, y; then --d is not used")
    add("--prepare", choices=("centre", "whiten"), help="make the rows of --data more like Gaussian ones")
    add("--n", type=_whole, default=1000, help="samples of each stage")
    add("--d", type=_whole, default=300, help="inputs")
    add("--hidden", type=_whole, default=500, metavar="N", help="hidden units")
    add("--ridge", type=float, default=0.01, help="ridge penalty λ")
    add("--noise", type=float, default=0.0, help="standard deviation of the label noise")
    add("--first-layer", choices=FIRST_LAYERS, default="sphere", help="law of the rows of W0")
    add("--initial-output", choices=INITIAL_OUTPUTS, default="negligible", help="whether the residual counts it")
    add("--eta", nargs="+", type=float, metavar="STEP", help="step sizes; else n^0.1, …, n^0.5")
    add("--trials", type=int, default=32, help="replicates; 0 predicts only")
    add("--seed", type=int, default=0, help="root of all random numbers")
    add("--jobs", type=int, default=2, help="replicates at once")
    add("--save", metavar="DIR", help="write study.txt, study.png and study.npz there")
    return out


def _whole(text):
    """A whole number, also one written as 1e26."""
    with suppress(ArithmeticError):
        if abs(number := Decimal(text)) <= 10**30 and number == number.to_integral_value():
            return int(number)
    raise argparse.ArgumentTypeError(f"{text!r} is no whole number up to 1e30, such as 1000 or 1e26")


def _function(option, words, centre=False):
    """What an activation's or teacher's words mean to `Problem`."""
    module, colon, name = words[0].partition(":")
    if len(words) > 1 or not colon:
        try:
            return tuple(map(float, words))
        except ValueError:
            if len(words) == 1:
                return module
            raise ValueError(f"{option} {' '.join(words)}: must be one name, or numbers") from None
    try:
        spec = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever the file does when it is read
        raise ValueError(f"{option} {module}:{name}: {type(error).__name__}: {error}") from error
    return hermite.centred(hermite.function(spec, option)) if centre and callable(spec) else spec


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")  # where a terminal has no η
    warnings.showwarning = lambda message, *_, **__: print(f"note: {message}", file=sys.stderr)
    sys.exit(main())
