"""What the metrics are; docs/reference/metrics-of-scheduling.md defines each, with its source."""

import msgspec


class Distribution(msgspec.Struct, frozen=True):
    """Of some numbers; percentiles interpolate, all are None without any number."""

    count: int
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    max: float | None = None


class Censored(msgspec.Struct, frozen=True):
    """Of times, some of which were not over when they were last looked at.

    Attributes:
        over: of those that were over.
        open: how many were not.
        at_least: of all, what is open counted with the time so far: no figure can be less.
    """

    over: Distribution
    open: int
    at_least: Distribution


#: By size of the job: `all`, and those of `alnair.history.metrics.sizes.SIZES`.
BySize = dict[str, Censored]


class Counts(msgspec.Struct, frozen=True):
    """Jobs or pods and what became of them.

    Attributes:
        finished: their work was done.
        left: they went without that: failed, deleted, given up.
        running, waiting: they were there at the end of the history.
    """

    total: int
    finished: int
    left: int
    running: int
    waiting: int


class GpuUse(msgspec.Struct, frozen=True):
    """GPU hours, and percents of those that there were.

    Attributes:
        used_hours: in which GPUs worked, where that is known.
        unmeasured_hours: allocated, of which nobody knows.
        used_pct: None if nothing of what was allocated is known.
        contended_pct: allocated, while pods that ask for GPUs waited; None if none ever did.
        peak_pct: the most that was allocated at a moment.
    """

    capacity_hours: float
    allocated_hours: float
    used_hours: float
    unmeasured_hours: float
    allocated_pct: float
    used_pct: float | None
    contended_pct: float | None
    peak_pct: float


class Fragmentation(msgspec.Struct, frozen=True):
    """Free GPU that is of no use to the workload, means over time.

    Attributes:
        f_pct: F of FGD, percent of the capacity.
        free_gpus: not allocated, on nodes that were there.
        usable_gpus: of these, what a pod of the workload can use on average.
        stranded_gpus: of these, the rest by cause (`alnair.history.metrics.fragmentation.CAUSES`).
        lost_gpus: of nodes that were not there.
    """

    f_pct: float
    free_gpus: float
    usable_gpus: float
    stranded_gpus: dict[str, float]
    lost_gpus: float


class Queue(msgspec.Struct, frozen=True):
    """Pods without a node, and the GPUs that they ask for."""

    mean_pods: float
    max_pods: int
    mean_gpus: float
    max_gpus: float


class User(msgspec.Struct, frozen=True):
    """How a user fared.

    Attributes:
        gpu_hours: held.
        wanted_gpu_hours: of jobs from their submission until they went.
        share: held of wanted.
        wait_mean: seconds, of jobs that started.
        rho: finish-time fairness over finished jobs with GPUs; None without any.
        rho_at_least: the same with unfinished jobs as far as they got.
        unfinished: jobs with GPUs that are not in `rho`.
    """

    jobs: int
    gpu_hours: float
    wanted_gpu_hours: float
    share: float | None
    wait_mean: float | None
    rho: float | None
    rho_at_least: float | None
    unfinished: int


class Fairness(msgspec.Struct, frozen=True):
    """Between users.

    Attributes:
        jain: index of their shares; None without users who want GPUs.
        worst_rho: the largest; None if there is none.
    """

    jain: float | None
    worst_rho: float | None
    users: dict[str, User]


class Disruption(msgspec.Struct, frozen=True):
    """Stays that ended before their work was done, by how they ended.

    Attributes:
        ended: stays.
        wasted_gpu_hours: of work that has to be done again.
        jobs: that it happened to.
    """

    ended: dict[str, int]
    wasted_gpu_hours: dict[str, float]
    jobs: int


class Gangs(msgspec.Struct, frozen=True):
    """Gangs, by whether they ever ran whole.

    Attributes:
        whole: as many pods as the gang needs were there at once.
        in_part: some pods were there, and never enough.
        waiting: no pod ever was.
        whole_pct: of those that had any pod; None if none had.
        spread: seconds from the first to the last of these pods.
        partial_gpu_hours: held by gangs that were not whole.
    """

    total: int
    whole: int
    in_part: int
    waiting: int
    whole_pct: float | None
    spread: Distribution
    partial_gpu_hours: float


class Pair(msgspec.Struct, frozen=True):
    """Two kinds of jobs on one GPU: speeds as parts of those alone, means over the time."""

    first: str
    second: str
    seconds: float
    first_rate: float
    second_rate: float
    throughput: float


class Sharing(msgspec.Struct, frozen=True):
    """Co-located jobs.

    Attributes:
        throughput_mean: normalised, of both together, mean over time; None without pairs.
        rate_mean, rate_min: of each job, 1 = as fast as alone.
        pairs: by kinds, the longest together first.
    """

    seconds: float
    throughput_mean: float | None
    rate_mean: float | None
    rate_min: float | None
    pairs: list[Pair]


class Decisions(msgspec.Struct, frozen=True):
    """Attempts at pods; `per_second` of the scheduler's own time, None if that is not known."""

    count: int
    seconds: float
    per_second: float | None


class Series(msgspec.Struct, frozen=True):
    """Means over equal spans of time.

    Attributes:
        edges: seconds, one more than there are spans.
        values: name → one number per span.
    """

    edges: list[float]
    values: dict[str, list[float]]


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """All metrics of a history; times in seconds.

    Attributes:
        seconds: that the history lasts.
        gpus: mean over time.
        makespan: from the first submission to the last completion.
        makespan_open: jobs are unfinished, so it is at least that.
        refusals: why pods had no node at the end, and how many.
    """

    source: str
    seconds: float
    nodes: int
    gpus: float
    users: int
    jobs: Counts
    pods: Counts
    gpu: GpuUse
    fragmentation: Fragmentation
    queue: Queue
    wait: BySize
    completion: BySize
    slowdown: BySize
    bounded_slowdown: BySize
    pod_wait: BySize
    makespan: float
    makespan_open: bool
    refusals: dict[str, int]
    fairness: Fairness
    disruption: Disruption
    gangs: Gangs
    sharing: Sharing
    decisions: Decisions
    series: Series
