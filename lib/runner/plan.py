"""What a run has to do: its notebooks, their parameters, and which of them are not current."""

import os
from dataclasses import dataclass

from .notebook import UserError, digest
from .project import Manifest

PRESETS = ("quick", "default", "large")


@dataclass(frozen=True)
class Plan:
    """What a run was asked for and what it has to do.

    Attributes
    ----------
    project, preset
    label : str
        Folder of the results: "default" for the committed set, else below `build`.
    notebooks : list of Notebook
        All that were asked for.
    values : dict
        Parameters other than the notebook's own, by its name.
    keys : dict
        Digest of all that decides a notebook's results, by its name.
    stale : list of Notebook
        Those that have to run, the longest first.
    manifest : Manifest
    kernel : dict
        Environment variables of the kernels.
    """

    project: object
    preset: str
    label: str
    notebooks: list
    values: dict
    keys: dict
    stale: list
    manifest: Manifest
    kernel: dict

    def needs(self):
        """Peak memory in GiB of each notebook that runs, by its name."""
        return {notebook.name: self.project.memory(self.preset, notebook.name) for notebook in self.stale}

    def current(self):
        """Notebooks whose results stand as this plan makes them."""
        return [each for each in self.notebooks if self.manifest.holds(each.name, self.keys[each.name])]

    def keep_key(self, notebook):
        """Digest of a notebook's code and parameters, the library and the lock: the replicates' key."""
        return digest((notebook.code(self.values[notebook.name]) + self.project.environment).encode())

    def seconds(self):
        """CPU seconds that each notebook that runs will take, by its name; empty if one of them is not known."""
        found = {notebook.name: self._seconds(notebook.name) for notebook in self.stale}
        return found if all(found.values()) else {}

    def _seconds(self, name):
        earlier = self.manifest.entries.get(name, {}).get("cpu")
        return earlier or self.project.seconds(self.preset, name)


def plan(project, wanted, preset, settings, label, scheduler=None):
    """The `Plan` of a run; raises UserError as `run` does."""
    if preset not in PRESETS:
        raise UserError(f"no preset {preset!r}: choose {', '.join(PRESETS)}")
    notebooks = project.notebooks(wanted)
    values = {each.name: project.values(preset, each.name) | settings for each in notebooks}
    for notebook in notebooks:
        notebook.check(values[notebook.name])
    if scheduler:
        _answers(scheduler)
    kernel = {"ONESTEP_SCHEDULER": scheduler} if scheduler else {}
    if preset == "large":  # hours of replicates: a run that is killed goes on where it was
        kernel["ONESTEP_KEEP"] = str(project.build / "replicates")
    manifest = Manifest(project, label)
    keys = {notebook.name: notebook.key(values[notebook.name], project.environment) for notebook in notebooks}
    stale = [notebook for notebook in notebooks if not manifest.holds(notebook.name, keys[notebook.name])]
    planned = Plan(project, preset, label, notebooks, values, keys, stale, manifest, kernel)
    stale.sort(key=lambda notebook: -planned._seconds(notebook.name))
    return planned


def _answers(scheduler):
    from onestep.simulate.replicates import cluster

    try:
        cluster(scheduler)
    except ValueError as error:
        raise UserError(str(error)) from error


def places(planned):
    """How many notebooks run at a time; raises UserError if one of them does not fit into the free memory."""
    from onestep.checks import available_gib

    needs, free = planned.needs(), available_gib()
    for name, need in needs.items():
        if need > free:
            preset = planned.preset
            raise UserError(f"{name} needs about {need:.1f} GiB of memory at preset {preset}; {free:.1f} GiB are free")
    jobs = min(2, os.cpu_count() or 1)
    return jobs if sum(sorted(needs.values())[-jobs:]) <= free else 1


def announcement(planned, jobs, seconds):
    """What will run, how many at a time, for how long if `seconds` are known, and in how much memory."""
    count = len(planned.stale)
    needs = sorted(planned.needs().values())
    parts = [f"{count} notebook{'s' * (count > 1)} to run", "two at a time" if jobs == 2 else "one at a time"]
    if seconds:
        expected = max(sum(seconds.values()) / jobs, *seconds.values())
        parts.append(f"about {expected / 60:.0f} min" if expected >= 90 else f"about {expected:.0f} s")
    parts.append(f"at most {sum(needs[-jobs:]):.1f} GiB")
    return f"{', '.join(parts)}: {', '.join(notebook.name[:2] for notebook in planned.stale)}"
