"""Jobs that arrive, run and leave at a load: openb's, Philly's, and an own mix with a heavy tail.

Each is drawn anew by the seed: which job comes when, at Poisson arrivals. Run times longer than
`LONGEST` are cut there, as a run of days would end on an empty cluster.
"""

import random
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from alnair.model.nodes import Node
from alnair.sim.inputs import InputOptions, load
from alnair.sim.inputs.pod_templates import PodStamp
from alnair.sim.jobs import Job, Scenario
from alnair.traces.openb import TracePod

#: Workload → seconds that a job runs at most.
LONGEST: Final = {"openb": 6 * 3600.0, "philly": 24 * 3600.0, "tail": 6 * 3600.0}
#: The own mix: cores, GPUs, thousandths of each, and how often such a job comes.
_TAIL: Final = (
    ((4, 0, 0), 15),
    ((2, 1, 150), 10),
    ((3, 1, 300), 12),
    ((6, 1, 600), 8),
    ((8, 1, 1000), 36),
    ((20, 2, 1000), 8),
    ((44, 4, 1000), 6),
    ((90, 8, 1000), 3),
)
#: Its run times are Pareto: P(longer than t) = (60 s / t)^0.7, of infinite mean but for the cut.
_SHORTEST: Final = 60.0
_SHAPE: Final = 0.7
_TAIL_JOBS: Final = 12_000


def scenario(workload: str, load_factor: float, seed: int, times: int = 1) -> Scenario:
    """Return a workload's jobs, so many times over, at a load of so many times its GPUs.

    Raises:
        KeyError: there is no such workload.
    """
    nodes, jobs = WORKLOADS[workload](seed)
    draw = random.Random(f"{seed}/wait")
    jobs = [again(job, i) for i in range(times) for job in jobs]
    draw.shuffle(jobs)
    longest = LONGEST[workload]
    jobs = [msgspec.structs.replace(j, duration=min(j.duration, longest)) for j in jobs]
    offered = sum(gpus_of(job) * job.duration for job in jobs)
    rate = len(jobs) * load_factor * sum(len(node.gpus) for node in nodes) / offered
    now, arriving = 0.0, []
    for job in jobs:
        now += draw.expovariate(rate)
        arriving.append(msgspec.structs.replace(job, submitted=now))
    return Scenario(nodes=tuple(nodes), jobs=tuple(arriving), begin=_BEGIN)


def again(job: Job, number: int) -> Job:
    """Return a job once more, under a name of its own."""
    if not number:
        return job
    pods = [msgspec.structs.replace(p, name=f"{p.name}-{number}") for p in job.pods]
    return msgspec.structs.replace(job, name=f"{job.name}-{number}", pods=tuple(pods))


def gpus_of(job: Job) -> float:
    """Return the GPUs that a job's pods take."""
    demands = [pod.spec.gpu for pod in job.pods]
    return sum(demand.whole + demand.compute / 100 for demand in demands if demand)


def _openb(seed: int) -> tuple[Sequence[Node], list[Job]]:
    """Return openb's pods, and every twelfth of its nodes."""
    read = load((), InputOptions(default_duration=3600.0, seed=seed)).scenario
    return read.nodes[::12], list(read.jobs)


def _philly(seed: int) -> tuple[Sequence[Node], list[Job]]:
    """Return the week of Philly that ships with Alnair; jobs of several nodes are gangs."""
    read = load(["philly"], InputOptions(seed=seed)).scenario
    return read.nodes, list(read.jobs)


def _tail(seed: int) -> tuple[Sequence[Node], list[Job]]:
    """Return the own mix, on openb's nodes of eight GPUs and 96 cores."""
    read = load((), InputOptions(default_duration=3600.0, limit=1)).scenario
    nodes = [node for node in read.nodes if len(node.gpus) == 8 and node.gpus[0].model == "G2"][:24]
    draw = random.Random(f"{seed}/tail")
    shapes, weights = zip(*_TAIL, strict=True)
    stamp = PodStamp("alnair-scheduler", nodes)
    jobs = []
    for i, (cores, gpus, milli) in enumerate(draw.choices(shapes, weights, k=_TAIL_JOBS)):
        shape = TracePod("", cores * 1000, cores * 4096, gpus, milli)
        duration = _SHORTEST * draw.paretovariate(_SHAPE)
        job = Job(name=f"tail-{i:05d}", submitted=0.0, pods=(), duration=duration)
        jobs.append(stamp.job(job, "tail", [shape]))
    return nodes, jobs


#: Name → nodes and jobs by a seed; when jobs come is not read.
WORKLOADS: Final[dict[str, Callable[[int], tuple[Sequence[Node], list[Job]]]]] = {
    "openb": _openb,
    "philly": _philly,
    "tail": _tail,
}
#: What the engine takes for the time of the begin: 2026-01-01.
_BEGIN: Final = 1_767_225_600.0
