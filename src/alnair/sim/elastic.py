"""How many workers elastic jobs run with in a simulation: by the plan of live clusters."""

from collections.abc import Sequence
from typing import Protocol

from alnair.elastic import fair_plan
from alnair.elastic.fair_plan import PlanOptions
from alnair.model.elastic_plan import Cluster, ElasticDemand, Plan


class ElasticPlan(Protocol):
    """Says with how many workers elastic jobs shall run."""

    def plan(self, jobs: Sequence[ElasticDemand], cluster: Cluster, now: float) -> Plan:
        """Return how many workers every job shall have.

        It is asked once after everything that happens at a moment, and when it wants to be.
        Workers are created and queue as all other pods do; if there are too many, those that wait
        go first, then the youngest. What a job has done is never lost by it. Numbers beyond the
        job's bounds are cut to them; a job that never had a worker may have 0.

        Args:
            jobs: In the order in which they were submitted.
            cluster: The scheduler's books, and what waits besides.
            now: Seconds since the epoch.
        """
        ...


class FairPlan:
    """The plan of live clusters (`alnair.elastic.fair_plan`)."""

    def __init__(self, options: PlanOptions | None = None) -> None:
        self._options = options

    def plan(self, jobs: Sequence[ElasticDemand], cluster: Cluster, now: float) -> Plan:
        """Return how many workers every job shall have."""
        return fair_plan.plan(jobs, cluster, now, self._options)
