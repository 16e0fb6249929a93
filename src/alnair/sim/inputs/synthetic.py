"""Jobs that are made up by a seed: Poisson arrivals, sizes by their shares, log-normal run times.

Log-normal fits what clusters measure well enough to compare policies by (Philly's run times have a
median of 19 minutes and a mean of 3.6 hours); what counts on a cluster is its own trace.
"""

import math
import random
from collections.abc import Iterator

from alnair.model.nodes import Node
from alnair.sim.inputs.options import Found, InputOptions, Mix
from alnair.sim.inputs.pod_templates import PodStamp, commonest, gpu_shape, parts
from alnair.sim.jobs import Job
from alnair.traces.files import TraceFileError
from alnair.traces.node_shapes import EXAMPLES
from alnair.traces.openb import WHOLE, TracePod

_NAMESPACE = "synthetic"
_MOST_JOBS = 1_000_000
#: Jobs an hour: with fewer, times are too large to tell moments apart.
_FEWEST = 1e-6


def read(options: InputOptions, nodes: tuple[Node, ...]) -> Found:
    """Return the jobs of `options.mix`.

    Args:
        options: What to make up, and the seed.
        nodes: Of the cluster.

    Raises:
        TraceFileError: No such mix can be, or there are no nodes with GPUs.
    """
    mix = options.mix
    problems = list(_wrong(mix))
    size = options.pod_units or commonest(len(node.gpus) for node in nodes)
    if not size and (nodes or not options.nodes):
        problems.append(f"made-up jobs need nodes with GPUs: name some with --nodes, {EXAMPLES}")
    if problems:
        raise TraceFileError("\n".join(problems))
    if not size:
        return Found(format="synthetic", jobs=[], nodes=nodes)
    draw = random.Random(f"{options.seed}/synthetic")
    stamp = PodStamp(options.profile, nodes, compute=options.shares == "compute")
    sizes, weights = zip(*mix.gpus, strict=True)
    jobs = []
    now = 0.0
    for i in range(mix.jobs):
        now += draw.expovariate(mix.per_hour / 3600)
        (gpus,) = draw.choices(sizes, weights)
        user = f"user-{draw.randrange(mix.users)}"
        job = Job(
            name=f"job-{i:06d}",
            user=user,
            submitted=now,
            pods=(),
            duration=max(1.0, draw.lognormvariate(math.log(mix.median), mix.spread)),
        )
        if gpus < 1:
            shapes = [TracePod("", 0, 0, 1, round(gpus * WHOLE))]
        else:
            shapes = [gpu_shape(part) for part in parts(int(gpus), size)]
        jobs.append(stamp.job(job, options.namespace or _NAMESPACE, shapes))
    return Found(format="synthetic", jobs=jobs, nodes=nodes)


def _wrong(mix: Mix) -> Iterator[str]:
    if not 1 <= mix.jobs <= _MOST_JOBS:
        yield f"{mix.jobs} jobs cannot be made up: ask for 1 to {_MOST_JOBS}"
    if not _FEWEST <= mix.per_hour < math.inf:
        yield f"{mix.per_hour:g} jobs an hour cannot be made up: write {_FEWEST:g} or more"
    if not 0 < mix.median < math.inf or not 0 <= mix.spread <= 10:
        yield f"run times of {mix.median:g} s with a spread of {mix.spread:g}: write 0 < s, 0 to 10"
    if mix.users < 1:
        yield f"{mix.users} users cannot share the jobs: write 1 or more"
    if not mix.gpus or not all(
        0.01 <= gpus <= 10_000 and (gpus < 1 or gpus == int(gpus)) and 0 <= weight < math.inf
        for gpus, weight in mix.gpus
    ):
        yield "a size of jobs is a part of a GPU from 0.01 on, or whole GPUs, and how often it is"
    elif not sum(weight for _, weight in mix.gpus) > 0:
        yield "no size of jobs occurs: give one a share above 0"
