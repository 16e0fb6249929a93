"""What decides how many pods elastic jobs run with: the interface, filled by an elastic plan."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from alnair.sim.jobs import Elastic


class ElasticJob(msgspec.Struct, frozen=True):
    """An elastic job that has been submitted and has not finished.

    Attributes:
        name: its name.
        elastic: its bounds, and its speed by number of pods.
        asked: pods that it was submitted with.
        running: pods that are on nodes.
        waiting: pods that have no node yet.
        gpus: that one of its pods asks for, a half is 0.5.
        remaining: seconds of work that are left at the speed of `asked` pods.
    """

    name: str
    elastic: Elastic
    asked: int
    running: int
    waiting: int
    gpus: float
    remaining: float


class ElasticPlan(Protocol):
    """Says with how many pods elastic jobs shall run."""

    def plan(
        self, jobs: Sequence[ElasticJob], free_gpus: int, waiting_gpus: float, now: float
    ) -> Mapping[str, int]:
        """Return the number of pods of each job that shall have another than now.

        It is asked once after everything that happens at a moment. Further pods are created and
        queue as all others do; if there are too many, those that wait go first, then the youngest.
        What a job has done is never lost by it. Numbers beyond the job's bounds are cut to them.

        Args:
            jobs: in the order in which they were submitted.
            free_gpus: GPUs of the cluster that nobody uses.
            waiting_gpus: that pods ask for which have no node, without those of elastic jobs that
                run already.
            now: seconds since the epoch.
        """
        ...
