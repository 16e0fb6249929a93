"""What a user says of a simulation's inputs, and what comes of it."""

import math
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from alnair.model import names
from alnair.model.nodes import Node
from alnair.sim.inputs.training_jobs import Bounds
from alnair.sim.jobs import Job, Scenario

#: The formats, by the names that people choose them by; empty = told by the content.
Format = Literal["", "openb", "philly", "swf", "manifests", "snapshot", "synthetic", "history"]


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that are made up, see `sources.synthetic`.

    Attributes:
        jobs: how many.
        per_hour: mean arrivals (a Poisson process).
        gpus: GPUs of a job and how often jobs of that size are, pairs; a fraction shares a GPU.
        median: seconds that half of the jobs exceed; run times are log-normal.
        spread: standard deviation of the run times' logarithm.
        users: how many, all equally busy.
    """

    jobs: int = 1000
    per_hour: float = 60.0
    gpus: tuple[tuple[float, float], ...] = ((0.5, 20), (1, 60), (2, 8), (4, 6), (8, 5), (16, 1))
    median: float = 1200.0
    spread: float = 1.5
    users: int = 10


class InputOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How inputs become a scenario.

    Attributes:
        format: of the trace; empty = told by its content.
        nodes: shapes (`300x8xV100M32`, see `traces.node_shapes`) or a node list's path; empty =
            what
            the trace says.
        pods: of an openb folder, which pod list, see `traces.openb_files.load`.
        profile: the pods' schedulerName; manifests and snapshots say their own.
        namespace: of the pods of traces that say none.
        limit: only so many jobs, the first ones.
        since, until: only jobs submitted in this time, seconds since the trace's begin; `since`
            becomes the begin.
        arrivals: jobs come so many times as fast; run times stay.
        submit_at: seconds since the begin at which pods come that do not say when.
        default_duration: seconds that jobs run whose run time is not known. None: jobs of traces
            are left out, those of manifests and snapshots never end.
        estimate: expected run times (`Pod.time_limit`) are so many times the true ones; 0 = nobody
            knows them. None: as the trace says.
        pod_units: most GPUs, or cores, of one pod of a job that may have several; 0 = those of the
            commonest node.
        shares: what pods that share a GPU ask for: `compute` and memory, each enforced, or only
            `memory`, and then they are in one another's way.
        utilisation: `measured` gives each GPU job the kind and the utilisation of a measured
            training run, drawn by the seed.
        history: Reads a history of the controller's, in place of a trace; None = there is none.
        elastic_share: of the jobs with several GPUs, this part can have fewer or more.
        seed: of all draws.
        node_mtbf: mean seconds between failures of one node; 0 = none fail.
        node_mttr: mean seconds until it is back.
        mix: of the format `synthetic`.
    """

    format: Format = ""
    nodes: str = ""
    pods: str = ""
    profile: str = names.SCHEDULER
    namespace: str = ""
    limit: int | None = None
    since: float = 0.0
    until: float = math.inf
    arrivals: float = 1.0
    submit_at: float | None = None
    default_duration: float | None = None
    estimate: float | None = None
    pod_units: int = 0
    shares: Literal["compute", "memory"] = "compute"
    utilisation: Literal["", "measured"] = ""
    elastic_share: float = 0.0
    seed: int = 0
    node_mtbf: float = 0.0
    node_mttr: float = 3600.0
    mix: Mix = Mix()
    history: "Callable[[InputOptions, tuple[Node, ...]], Found] | None" = None


DEFAULTS: Final = InputOptions()


class Found(msgspec.Struct, kw_only=True):
    """What a reader found in a trace, before it is cut and shifted.

    Attributes:
        format: of the trace.
        jobs: `submitted` is in seconds since `begin`, in any order.
        nodes: of the trace, or those that the options named.
        begin: seconds since the epoch; 0 if the trace does not say.
        objects: as in `Scenario`.
        running: as in `Scenario`.
        notes: what was left out or taken for granted, for people.
        trainings: jobs that start with as many workers as there is room for, by their PodGroup.
    """

    format: Format
    jobs: list[Job]
    nodes: tuple[Node, ...]
    begin: float = 0.0
    objects: tuple[tuple[str, str, str, object], ...] = ()
    running: tuple[Job, ...] = ()
    notes: list[str] = []
    trainings: dict[tuple[str, str], Bounds] = {}


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario and what people should know of it.

    Attributes:
        source: what it was made of.
        format: of the trace.
        notes: what was left out, or taken for granted.
        warnings: what is surely not meant, such as pods that fit no node.
    """

    scenario: Scenario
    source: str
    format: Format
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
