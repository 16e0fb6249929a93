"""How many workers training jobs have, and shall have: what a plan is made of."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec


class ElasticDemand(msgspec.Struct, frozen=True, kw_only=True):
    """A training job that can have fewer or more workers, and has not ended.

    Attributes:
        key: Unique.
        created: Seconds since the epoch: who came first.
        priority: Of its pods.
        least: Fewest workers with which it runs.
        wish: Most workers that are wanted for now.
        size: Workers that it was last given; 0 = none yet.
        placed: Workers that have a node, with those that are leaving.
        gpus: That one worker takes; a half is 0.5.
        started: All its workers had a node at one time; from then on its least are enough.
        unschedulable: The scheduler has found that the workers without a node fit nowhere.
        resized: When it was last given another size, seconds since the epoch.
        eager: Its user has just asked for more, so it need not wait for them.
        grows: It takes more than it has when GPUs are free.
        speeds: Its speed with 1, 2, … workers, in any unit; empty: nobody knows.
    """

    key: str
    created: float = 0.0
    priority: int = 0
    least: int
    wish: int
    size: int = 0
    placed: int = 0
    gpus: float = 1.0
    started: bool = False
    unschedulable: bool = False
    resized: float = 0.0
    eager: bool = False
    grows: bool = True
    speeds: tuple[float, ...] = ()


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What waits for a place and is no elastic job: a pod, or a gang as a whole.

    Attributes:
        key: Unique, among the jobs, too.
        name: What people call it.
        created: Seconds since the epoch.
        priority: Of its pods.
    """

    key: str
    name: str = ""
    created: float = 0.0
    priority: int = 0


class Room(Protocol):
    """Where placements are tried: what is taken here is taken from nobody.

    It begins as the cluster is. What the scheduler holds for others is not free in it. Workers that
    were released come back, the last released first, only to where they were.
    """

    def place(self, key: str, workers: int) -> bool:
        """Place so many further workers of a job, or a claim as a whole, if all of them fit."""
        ...

    def release(self, key: str, workers: int) -> None:
        """Take away so many workers of a job: those placed here last, then those that go first."""
        ...


class Cluster(msgspec.Struct, frozen=True):
    """Where there is room, and what else waits for some."""

    room: Room
    claims: Sequence[Claim] = ()


class SizeChange(msgspec.Struct, frozen=True):
    """Another number of workers for a job, and why: a word in CamelCase, and a sentence."""

    key: str
    before: int
    after: int
    reason: str
    message: str


class Plan(msgspec.Struct, frozen=True):
    """What was decided.

    Attributes:
        sizes: Workers of every job; 0 = it waits.
        changes: From what they have.
        again: When to plan again though nothing has changed, seconds since the epoch.
    """

    sizes: Mapping[str, int]
    changes: tuple[SizeChange, ...] = ()
    again: float | None = None
