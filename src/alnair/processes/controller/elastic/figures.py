"""What the operator of training jobs counts, as metrics of the controller."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.metrics_core import Metric

from alnair.model.training_job import TrainingJob
from alnair.processes.controller.elastic.planner import Planner
from alnair.scheduler.metric_counters import Histogram, doubling
from alnair.serving.exposition import counter, gauge, histogram

#: Seconds from the news of a job to the end of the pass that it led to.
_PASS_SECONDS: Final = doubling(0.005, 12)


class OperatorFigures:
    """Counts of one process.

    Attributes:
        passes: How long jobs took from being named to the end of the pass.
        writes: Requests that write, by what they do: apply, create, delete, patch, status.
    """

    def __init__(self) -> None:
        self.passes = Histogram(_PASS_SECONDS)
        self.writes: Counter[str] = Counter()

    def metrics(
        self, planner: Planner, jobs: Iterable[TrainingJob], waiting: int | None
    ) -> Iterator[Metric]:
        """Return all families.

        Args:
            planner: Of the jobs' sizes.
            jobs: All that there are.
            waiting: Jobs that are to be looked at; None if this process does not lead: then it
                tells only what it has counted.
        """
        yield histogram(
            "alnair_training_reconcile_duration_seconds",
            "From the news of a training job to the end of the pass that it led to.",
            [({}, self.passes)],
        )
        yield counter(
            "alnair_training_writes_total",
            "Writes for training jobs by what they do: apply, create, delete, patch, status.",
            [({"verb": verb}, count) for verb, count in sorted(self.writes.items())],
        )
        yield histogram(
            "alnair_training_plan_duration_seconds",
            "How long a plan of all training jobs' sizes took.",
            [({}, planner.seconds)],
        )
        yield counter(
            "alnair_training_plan_failures_total",
            "Plans that could not be made; jobs keep their sizes.",
            [({}, planner.failures)],
        )
        yield counter(
            "alnair_training_resizes_total",
            "Changes of training jobs' sizes by reason.",
            [({"reason": reason}, count) for reason, count in sorted(planner.resizes.items())],
        )
        if waiting is not None:
            yield from _present(jobs, waiting)


def _present(jobs: Iterable[TrainingJob], waiting: int) -> Iterator[Metric]:
    phases: Counter[tuple[str, str]] = Counter()
    workers = {"wanted": 0, "given": 0, "available": 0}
    for job in jobs:
        phases[job.kind, job.status.phase or "Created"] += 1
        if not (job.finished or job.run.suspend):
            workers["wanted"] += job.wish
            workers["given"] += job.status.target_replicas or 0
            workers["available"] += job.status.available_replicas or 0
    yield gauge(
        "alnair_training_jobs",
        "Training jobs by kind and phase.",
        [({"kind": kind, "phase": phase}, n) for (kind, phase), n in sorted(phases.items())],
    )
    yield gauge(
        "alnair_training_workers",
        "Workers of jobs that have not ended: wanted by users, given by the plan, available.",
        [({"state": state}, count) for state, count in workers.items()],
    )
    yield gauge(
        "alnair_training_queue_jobs",
        "Training jobs that are to be looked at.",
        [({}, waiting)],
    )
