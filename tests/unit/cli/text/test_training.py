"""Tables of training jobs."""

import io

import msgspec
import pytest
from rich.console import Console

from alnair.cli.text import training
from alnair.live.training.summary import JobSummary

RUNNING = JobSummary(
    kind="ElasticTorchJob",
    namespace="default",
    name="digits",
    phase="Running",
    least=2,
    most=4,
    wish=4,
    target=4,
    workers=4,
    ready=3,
    gpus=4,
    created=0.0,
)


def shown(job: JobSummary) -> str:
    screen = io.StringIO()
    training.show_jobs([job], Console(file=screen, width=120), now=60.0)
    return screen.getvalue().splitlines()[1]


def test_of_the_workers_it_is_given_those_that_work_are_counted() -> None:
    assert shown(RUNNING).split()[2:5] == ["Running", "3/4", "2..4"]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_job_that_has_ended_has_no_workers_to_wait_for(phase: str) -> None:
    ended = msgspec.structs.replace(RUNNING, phase=phase, workers=0, ready=0)
    assert shown(ended).split()[2:5] == [phase, "-", "2..4"]
