"""What the status of a training says while it comes to its end."""

import msgspec
import pytest

from alnair.elastic.desired import desired
from alnair.elastic.observed import Group, Launcher, Observed, Worker
from alnair.kube.objects.training_jobs import (
    ElasticHorovodJobWire,
    ElasticTorchJobWire,
    project_training_job,
)
from alnair.model.api_types import Condition
from alnair.model.elastic_types import JobStatus
from kit import training_jobs as jobs

NOW = 1_800_000_000.0


def workers(ready: int) -> list[Worker]:
    return [Worker(i, placed=True, ready=True) for i in range(ready)]


RUNS = Observed(
    size=2,
    workers=workers(2),
    launcher=Launcher(running=True, pod="launcher-x"),
    group=Group(placed=True),
    has_keys=True,
)


def after(manifest: jobs.Manifest, end: Observed) -> JobStatus:
    """Return the status of a job that has run and of which this is left."""
    kind = {"ElasticTorchJob": ElasticTorchJobWire}.get(manifest["kind"], ElasticHorovodJobWire)
    job = project_training_job(msgspec.convert(manifest, kind))
    job = msgspec.structs.replace(job, status=desired(job, RUNS, 2, NOW).status)
    assert job.status.phase == "Running"
    return desired(job, end, 2, NOW + 1).status


def said(status: JobStatus) -> dict[str, Condition]:
    return {one.type: one for one in status.conditions or ()}


@pytest.mark.parametrize(
    ("ready", "completed", "words"),
    [(1, 1, "1 worker has ended well"), (0, 2, "2 workers have ended well")],
)
def test_torchrun_runs_until_the_end_while_its_workers_end_well(
    ready: int, completed: int, words: str
) -> None:
    end = msgspec.structs.replace(RUNS, workers=workers(ready), completed=completed)
    status = after(jobs.torch(least=2), end)
    found = said(status)
    assert (status.phase, found["Scaling"].reason) == ("Running", "Steady")
    assert (found["Scheduled"].status, found["Running"].message) == ("True", words)


def test_one_worker_that_has_ended_well_is_not_as_many_as_the_training_needs() -> None:
    end = msgspec.structs.replace(RUNS, workers=[Worker(0, placed=True)], completed=1)
    found = said(after(jobs.torch(least=2), end))
    assert (found["Running"].status, found["Scaling"].reason) == ("False", "ScalingUp")


@pytest.mark.parametrize(
    ("well", "phase", "words"),
    [
        (True, "Running", "the launcher has ended well"),
        (False, "Scheduled", "the launcher has failed"),
        (None, "Scheduled", "the launcher does not run yet"),
    ],
)
def test_a_launcher_that_has_ended_is_not_yet_to_begin(
    well: bool | None, phase: str, words: str
) -> None:
    end = msgspec.structs.replace(RUNS, launcher=Launcher(ended_well=well))
    status = after(jobs.elastic(), end)
    assert (status.phase, said(status)["Running"].message) == (phase, words)
