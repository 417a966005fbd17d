"""What equations (43) and (44) of docs/theory.md do on the problems of range_map.csv: deviations with each and without.

    terms.py     print the numbers of section 10, a few minutes of one core

A line gives the standard deviation of simulated over predicted losses beyond the error of the simulation.
"""

from contextlib import contextmanager
from dataclasses import replace

import range_map

from onestep.theory.fixed_point import solver, units


@contextmanager
def without_43():
    """Samples count alike in β."""
    real = solver.first_batch
    solver.first_batch = lambda p, phi, order, tau=0.0: real(p, phi, order)
    try:
        yield
    finally:
        solver.first_batch = real


@contextmanager
def without_44():
    """Rows have no excess along ζ and no covariance with it."""
    real = units.on_nodes

    def plain(*arguments):
        found = real(*arguments)
        plane = found.plane.copy()
        plane[0, 1] = plane[1, 0] = 0
        plane[1, 1] = 1
        return replace(found, plane=plane)

    units.on_nodes = plain
    try:
        yield
    finally:
        units.on_nodes = real


def line(name, rows, term):
    """A line of the table: name, number of problems, and each loss without and with the term."""
    numbers = sorted({int(row["problem"]) for row in rows})
    with term():
        predictions = {number: range_map.predicted(number) for number in numbers}
    steps = {number: range_map.problem(number)[1].tolist() for number in numbers}
    plain = [{**r, **predictions[int(r["problem"])][steps[int(r["problem"])].index(float(r["eta"]))]} for r in rows]
    cells = [f"{name}, {len(numbers)} problems"]
    for loss in range_map.CONSTANT:
        for table in (plain, rows):
            _, error, noise, _ = range_map.deviations(table, loss)
            cells.append(f"{100 * range_map.law(error, noise, 1.0):.2f} %")
    return f"| {' | '.join(cells)} |"


def main():
    rows = [r for r in range_map.table() if float(r["eta"]) > 0 and " " not in r["activation"]]
    named = [r for r in rows if r["activation"] in ("tanh", "erf", "tilted_sin")]
    for output in ("negligible", "full"):
        print(
            line(f"(43), {output} output", [r for r in named if r["initial_output"] == output], without_43), flush=True
        )
    inside = range_map.covered(rows)
    print(line("(44), covered", inside, without_44), flush=True)
    dense = [r for r in inside if float(r["n"]) >= 0.1 * float(r["d"]) ** 2]
    print(line("(44), covered, n/d² ≥ .1", dense, without_44))


if __name__ == "__main__":
    main()
