"""Loads of many jobs that nearly all differ in size: made up by a seed, for `queue_sizes.py`.

`shares`: all come at one instant, each a share of one GPU, in 900 sizes; the queue is nothing but
classes. `mixed`: they come within an hour, with shares, whole GPUs, cores alone and gangs, in three
namespaces with elastic quotas, and with expected run times, so that quotas and reservations take
part. `contested`: the same with priorities and large guarantees, so that preemption and reclaim do;
they cost most there, so take few jobs.
"""

import random
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from alnair.model import names
from alnair.model.nodes import Node
from alnair.model.quota import Quota
from alnair.scheduler.state.objects.elastic_quotas import KIND as QUOTA
from alnair.sim.inputs import clusters
from alnair.sim.inputs.pod_templates import PodStamp, gpu_shape
from alnair.sim.jobs import Job, Scenario
from alnair.traces.openb import WHOLE, TracePod

#: Thousandths of a GPU that a share asks for: so many different ones.
SIZES: Final = tuple(range(100, 1000))
_TENANTS: Final = ("red", "green", "blue")
_HOUR: Final = 3600.0
#: Seconds: the median of run times, which are log-normal.
_MEDIAN: Final = 600.0
#: What the engine takes for the time of the begin: 2026-01-01.
_BEGIN: Final = 1_767_225_600.0


def shares(jobs: int, nodes: int, seed: int) -> Scenario:
    """Return jobs that each take a share of one GPU, all of which come at once.

    Args:
        jobs: So many.
        nodes: So many, with eight GPUs each.
        seed: Of the sizes and run times.
    """
    there = clusters.named(f"{nodes}x8xA100")
    draw = random.Random(f"{seed}/shares")
    stamp = PodStamp(names.SCHEDULER, there)
    made = []
    for number in range(jobs):
        shape = TracePod("", 1000, 4096, 1, draw.choice(SIZES))
        made.append(stamp.job(_job(number, 0.0, draw), "default", (shape,)))
    return Scenario(nodes=there, jobs=tuple(made), begin=_BEGIN)


def mixed(jobs: int, nodes: int, seed: int) -> Scenario:
    """Return jobs of all kinds that come within an hour, in namespaces with quotas.

    Args:
        jobs: So many.
        nodes: So many, with eight GPUs each, of two models.
        seed: Of all that is drawn.
    """
    return _tenants(jobs, nodes, seed, guaranteed=0.1, priorities=(0,))


def contested(jobs: int, nodes: int, seed: int) -> Scenario:
    """Return the same as `mixed`, but that some may make others leave."""
    return _tenants(jobs, nodes, seed, guaranteed=1 / 3, priorities=(*[0] * 9, 10))


def _tenants(
    jobs: int, nodes: int, seed: int, *, guaranteed: float, priorities: Sequence[int]
) -> Scenario:
    half = nodes // 2
    there = clusters.named(f"{nodes - half}x8xA100" + (f",{half}x8xV100M32" if half else ""))
    draw = random.Random(f"{seed}/mixed")
    stamp = PodStamp(names.SCHEDULER, there)
    made = []
    for number, came in enumerate(sorted(draw.uniform(0.0, _HOUR) for _ in range(jobs))):
        job = _job(number, came, draw)
        shapes = _shapes(draw)
        estimate = job.duration * draw.uniform(1.0, 2.0) if draw.random() < 0.7 else 0.0
        job = stamp.job(job, draw.choice(_TENANTS), shapes, estimate=estimate)
        priority = draw.choice(priorities)
        pods = [msgspec.structs.replace(pod, priority=priority) for pod in job.pods]
        made.append(msgspec.structs.replace(job, pods=tuple(pods)))
    return Scenario(nodes=there, jobs=tuple(made), objects=_quotas(there, guaranteed), begin=_BEGIN)


def _job(number: int, came: float, draw: random.Random) -> Job:
    return Job(
        name=f"job-{number:05d}",
        submitted=came,
        pods=(),
        duration=_MEDIAN * draw.lognormvariate(0.0, 1.0),
    )


def _shapes(draw: random.Random) -> Sequence[TracePod]:
    kind = draw.choices(("share", "whole", "cores", "gang"), (70, 15, 10, 5))[0]
    cores, memory = draw.randrange(500, 8000, 50), draw.randrange(1024, 32768, 64)
    if kind == "share":
        return (TracePod("", cores, memory, 1, draw.choice(SIZES)),)
    if kind == "whole":
        return (TracePod("", cores, memory, draw.choice((1, 1, 2, 4, 8)), WHOLE),)
    if kind == "cores":
        return (TracePod("", 4 * cores, memory, 0, 0),)
    return (gpu_shape(draw.choice((1, 2, 4))),) * draw.choice((2, 3, 4))


def _quotas(nodes: Sequence[Node], guaranteed: float) -> tuple[tuple[str, str, str, object], ...]:
    """Return a quota per tenant: the first may not exceed a quarter, the last has none."""
    cores = sum(node.allocatable["cpu"] for node in nodes)
    own = {"cpu": round(cores * guaranteed)}
    limits: Sequence[dict[str, int]] = ({"cpu": cores // 4}, {})
    return tuple(
        (QUOTA, tenant, "quota", Quota("quota", min=own, max=limit))
        for tenant, limit in zip(_TENANTS, limits, strict=False)
    )


#: Name → what is simulated, by jobs, nodes and a seed.
LOADS: Final[dict[str, Callable[[int, int, int], Scenario]]] = {
    "shares": shares,
    "mixed": mixed,
    "contested": contested,
}
