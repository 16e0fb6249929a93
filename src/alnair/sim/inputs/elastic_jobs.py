"""Jobs of traces as elastic ones: traces have none, so some are taken for such, by a seed.

A job of n whole GPUs becomes n workers of one GPU each, which can be fewer or more.
"""

import random
from collections.abc import Iterable
from typing import Final

import msgspec

from alnair.model.nodes import Node
from alnair.sim.inputs.pod_templates import PodStamp, gpu_shape
from alnair.sim.jobs import Elastic, Job

#: An elastic job has from a quarter to twice of the GPUs that it asked for.
_LEAST: Final = 4
_MOST: Final = 2
#: Twice the workers are 1.87 times as fast: an assumption, between the scaling that trainings with
#: large batches show and none.
_SCALING: Final = 0.9


def some_elastic(
    jobs: Iterable[Job], share: float, seed: int, profile: str, nodes: Iterable[Node]
) -> list[Job]:
    """Return the jobs, of which a share of those with two whole GPUs or more is elastic.

    Args:
        jobs: Of a trace.
        share: From 0 to 1.
        seed: Of the draws; each job has its own, by its name.
        profile: Their schedulerName.
        nodes: Of the cluster.
    """
    stamp = PodStamp(profile, nodes)
    return [
        _elastic(job, stamp)
        if _whole_gpus(job) > 1 and random.Random(f"{seed}/elastic/{job.name}").random() < share
        else job
        for job in jobs
    ]


def _elastic(job: Job, stamp: PodStamp) -> Job:
    gpus, first = _whole_gpus(job), job.pods[0]
    most = _MOST * gpus
    elastic = Elastic(
        least=max(1, gpus // _LEAST),
        most=most,
        speeds=tuple((workers / gpus) ** _SCALING for workers in range(1, most + 1)),
    )
    job = msgspec.structs.replace(job, gang=None, elastic=elastic)
    return stamp.job(job, first.namespace, [gpu_shape(1)] * gpus, estimate=first.time_limit)


def _whole_gpus(job: Job) -> int:
    """Return the GPUs of a job that has whole ones only, else 0."""
    demands = [pod.spec.gpu for pod in job.pods]
    if any(one is None or one.memory_mib or one.compute for one in demands):
        return 0
    return sum(one.whole for one in demands if one is not None)
