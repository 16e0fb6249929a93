"""Measured utilisations for the jobs of traces that have none, drawn by a seed.

The runs are 49 trainings on a P100 (data/p100/ORIGIN.md). Of each, the mean of the most and the
least that was measured is what the job uses while it runs alone.
"""

import random
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Final

import msgspec

from alnair.sim.jobs import Job
from alnair.traces import files
from alnair.traces.csv_table import Problem, rows

_COLUMNS: Final = ("model", "dataset", "batch_size", "gpu_util_most", "gpu_util_least")
#: The same model under the name that measured pairs of jobs have it by (data/gavel).
_PAIRED: Final = {"ResNet50": "ResNet-50"}


class Run(msgspec.Struct, frozen=True):
    """A measured run: what it computes, and the percent of a GPU's time that it uses."""

    kind: str
    util: float


@cache
def runs() -> tuple[Run, ...]:
    """Return the measured runs that ship with Alnair."""
    source = resources.files("alnair") / "data" / "p100" / "runs.csv"
    problems: list[Problem] = []
    table = rows(files.lines(source), str(source), required=_COLUMNS, problems=problems)
    found = []
    for row in table:
        model = _PAIRED.get(row.text("model"), row.text("model"))
        most, least = row.real("gpu_util_most"), row.real("gpu_util_least")
        found.append(Run(f"{model} (batch size {row.text('batch_size')})", (most + least) / 2))
    return tuple(found)


def measured(jobs: Iterable[Job], seed: int) -> list[Job]:
    """Return the jobs; each that asks for GPUs is one of the measured runs.

    A pod whose share of compute is enforced uses no more than that.

    Args:
        jobs: Of a trace.
        seed: Of the draws; each job has its own, by its name.
    """
    choice = runs()
    found = []
    for job in jobs:
        demands = [pod.spec.gpu for pod in job.pods if pod.spec.gpu is not None]
        if demands:
            run = random.Random(f"{seed}/{job.name}").choice(choice)
            limits = [demand.compute for demand in demands if not demand.soft and demand.compute]
            util = min([run.util, *map(float, limits)])
            job = msgspec.structs.replace(job, util=util, kind=run.kind)
        found.append(job)
    return found
