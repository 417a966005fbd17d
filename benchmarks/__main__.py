"""`python benchmarks`: measures everything, prints it and writes it to benchmarks/README.md; some minutes on two cores.

Each ratio is of two times of this run, on all cores both. Run it on an idle machine, or the times mean nothing.
"""

import sys
from pathlib import Path

import allocation
import bench_every_step
import bench_growth
import bench_operator_norm
import bench_profile
import bench_runner
import bench_sweep
import bench_theory
import bench_threestage
import timing

from onestep.report import markdown_table
from runner.files import write_atomically

HERE = Path(__file__).resolve().parent
PROFILED = "14_test_error_gains"


def page(machine, ratios, growth, calls, runner, profile):
    """The text of the README from its parts: sentences, and (head, body) of tables."""
    total, *functions = profile
    return f"""# How fast it is

`make bench` writes this page. {machine}

## Against the straightforward way

Both on all cores, in one run. *As printed* types in the formula of the slides; the other ways are what one would write
first. Gram matrices are in single precision and refined in double, so that a share of the rate in double can exceed
one.

{markdown_table(timing.HEAD, ratios)}

## Growth with n

One replicate on one core at d/n = 0.3, N/n = 0.5; the last line fits a power of n to the lines above it.

{markdown_table(*growth)}

## What theory costs

Once with nothing kept from earlier calls, and once more. No call grows with n.

{markdown_table(*calls)}

## What the runner adds

{runner}

## Where the time goes

Notebook {PROFILED[:2]} in one thread, {total:.0f} s under the profiler, which slows small calls. Products of matrices
count as own time of the function that takes them.

{markdown_table(*functions)}
"""


def main(folder=HERE, root=HERE.parent):
    ratios = [bench_sweep, bench_operator_norm, bench_every_step, bench_threestage]
    text = page(
        timing.machine(),
        [line for part in ratios for line in part.rows()],
        bench_growth.table(),
        bench_theory.table(),
        bench_runner.text(root),
        bench_profile.table(root / "notebooks" / f"{PROFILED}.ipynb"),
    )
    print(text)
    write_atomically(folder / "README.md", text.encode())
    return allocation.main(folder, root)


if __name__ == "__main__":
    sys.exit(main())
