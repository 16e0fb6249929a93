"""Training jobs as decisions see them, with what their users left out."""

from typing import Any

import msgspec
import pytest

from alnair.kube.objects.training_jobs import (
    ElasticHorovodJobWire,
    ElasticTorchJobWire,
    HorovodJobWire,
    project_training_job,
)
from alnair.model.training_job import TrainingJob
from kit import training_jobs as jobs

TYPES: dict[str, Any] = {
    "ElasticHorovodJob": ElasticHorovodJobWire,
    "HorovodJob": HorovodJobWire,
    "ElasticTorchJob": ElasticTorchJobWire,
}


def read(manifest: jobs.Manifest) -> TrainingJob:
    return project_training_job(msgspec.convert(manifest, TYPES[manifest["kind"]]))


def test_the_originals_jobs_are_read() -> None:
    job = read(jobs.ORIGINAL_ELASTIC)
    assert (job.kind, job.least, job.most, job.wish) == ("ElasticHorovodJob", 2, 5, 5)
    assert (job.gpus, job.slots, job.framework, job.scheduler) == (
        1,
        1,
        "horovod",
        "alnair-scheduler",
    )
    assert job.command == ("python", "/examples/elastic/pytorch/pytorch_mnist_elastic.py")
    fixed = read(jobs.ORIGINAL_FIXED)
    assert (fixed.least, fixed.most, fixed.wish, fixed.elastic) == (2, 2, 2, None)


@pytest.mark.parametrize(
    ("workers", "gpus", "slots"),
    [
        ({}, 1, 1),
        ({"gpusPerWorker": 4}, 4, 4),
        ({"gpusPerWorker": 4, "slots": 2}, 4, 2),
        ({"gpusPerWorker": 0}, 0, 1),
        ({"gpuSlice": {"memoryMiB": 4096}}, 0, 1),
    ],
)
def test_a_worker_has_a_process_for_each_gpu_unless_it_says_otherwise(
    workers: dict[str, Any], gpus: int, slots: int
) -> None:
    job = read(jobs.elastic(**workers))
    assert (job.gpus, job.slots) == (gpus, slots)


def test_what_the_user_scales_to_bounds_the_workers_from_above() -> None:
    assert read(jobs.elastic(least=2, most=6)).wish == 6
    assert read(jobs.elastic(least=2, most=6, targetReplicas=3)).wish == 3


def test_torchruns_command_is_that_of_its_workers() -> None:
    job = read(jobs.torch())
    assert (job.framework, job.launcher) == ("torch", None)
    assert job.command == ("python", "train.py", "--name", "two words")


def test_the_condition_that_ended_a_job_is_known() -> None:
    ended = {
        "type": "Failed",
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": "",
    }
    job = read(jobs.elastic() | {"status": {"conditions": [ended]}})
    assert job.finished == "Failed"
    assert read(jobs.elastic()).finished == ""
