"""A job in a few words."""

import msgspec
import pytest

from alnair.kube.objects.training_jobs import ElasticHorovodJobWire, project_training_job
from alnair.live.training.summary import progress, summary, work
from alnair.model.api_types import Condition, Workload
from alnair.model.elastic_types import JobStatus, MigrationStatus
from alnair.model.training_job import TrainingJob
from kit import training_jobs as jobs


def job(phase: str | None, *conditions: Condition, **status: object) -> TrainingJob:
    made = project_training_job(
        msgspec.convert(jobs.elastic("j", 2, 4, gpusPerWorker=2), ElasticHorovodJobWire)
    )
    found = JobStatus(phase=phase, conditions=[*conditions] or None)
    found = msgspec.structs.replace(found, **status)
    return msgspec.structs.replace(made, status=found)


def said(kind: str, status: str, message: str) -> Condition:
    return Condition(kind, status, "Reason", message, "2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (job(None), "Pending, 0 of 4 workers (2..4): the controller has not read it yet"),
        (
            job("Created", said("Scheduled", "False", "no room yet"), target_replicas=0),
            "Created, 0 of 4 workers (2..4): no room yet",
        ),
        (
            job(
                "Running", said("Running", "True", "runs"), target_replicas=3, available_replicas=3
            ),
            "Running, 3 of 3 workers (2..4)",
        ),
        (
            job(
                "Running",
                Condition("Running", "True", "WorkersEnded", "2 workers have ended well", "t"),
                target_replicas=2,
            ),
            "Running, 0 of 2 workers (2..4): 2 workers have ended well",
        ),
        (
            job("Failed", said("Failed", "True", "it crashed"), target_replicas=3),
            "Failed, 0 of 3 workers (2..4): it crashed",
        ),
        (
            job("Running", migration=MigrationStatus(request="a@1", message="moves worker 1 (a)")),
            "Running, 0 of 4 workers (2..4); moves worker 1 (a)",
        ),
    ],
)
def test_progress_says_how_far_a_job_is_and_why_it_is_no_further(
    seen: TrainingJob, expected: str
) -> None:
    assert progress(summary(seen)).startswith(expected)


def test_gpus_are_those_of_the_workers_that_there_are() -> None:
    assert summary(job("Running", replicas=3)).gpus == 6


def test_what_the_profiler_knows_of_the_work_is_told_and_no_more() -> None:
    found = Workload(v=1, t="", step=120, epoch=2.5, progress=0.25, eta_s=600)
    assert work(found) == "25%, step 120, epoch 2.5, about 10 min left"
    assert work(Workload(v=1, t="", type="training")) == ""
