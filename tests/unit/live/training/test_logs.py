"""Which lines of a job's log are wanted."""

from itertools import permutations
from typing import Any

import msgspec
import pytest

from alnair.kube.objects.training_jobs import ElasticTorchJobWire, project_training_job
from alnair.live.training.logs import LogPod, Wanted, _of_places, _Pod, chosen, of_rank
from kit import training_jobs as jobs

LAUNCHER = LogPod("l-x", "u", "launcher", "launcher", started=True)
LINES = [
    b"[1]<stdout>:step 1 loss 2.0",
    b"Mon Nov 23 14:00:00 2026[0]<stderr>:warning",
    b"[0]<stdout>:",
    b"[10]<stdout>:[0]<stdout>:not its own",
    b"horovodrun waits",
]


def test_a_rank_of_horovod_is_told_from_others_by_what_horovodrun_writes_before() -> None:
    assert chosen(LINES, LAUNCHER, Wanted(rank=0)) == [b"warning", b""]
    assert chosen(LINES, LAUNCHER, Wanted(rank=10)) == [b"[0]<stdout>:not its own"]
    assert of_rank(b"horovodrun waits", 0) is None


def test_without_a_rank_all_lines_are_wanted() -> None:
    assert chosen(LINES, LAUNCHER, Wanted()) == LINES
    worker = LogPod("w-0", "u", "worker", "worker-0", started=True)
    assert chosen(LINES, worker, Wanted(rank=0)) == LINES


def pod(name: str, second: int, phase: str, **meta: Any) -> _Pod:
    """A worker of index 0."""
    labels = {"role": "worker", "batch.kubernetes.io/job-completion-index": "0"}
    created = f"2026-01-01T00:00:{second:02}Z"
    metadata = {"name": name, "uid": name, "labels": labels, "creationTimestamp": created, **meta}
    return msgspec.convert({"metadata": metadata, "status": {"phase": phase}}, _Pod)


@pytest.mark.parametrize(
    "older",
    [
        pod("a", 1, "Running"),
        pod("a", 2, "Failed"),
        pod("a", 2, "Running", deletionTimestamp="2026-01-01T00:00:02Z"),
        pod("a", 2, "Failed", deletionTimestamp="2026-01-01T00:00:02Z"),
    ],
)
def test_of_two_pods_in_a_place_the_log_of_the_newer_is_shown(older: _Pod) -> None:
    job = project_training_job(msgspec.convert(jobs.torch("job", 1, 4), ElasticTorchJobWire))
    for there in permutations([older, pod("b", 2, "Pending")]):
        (found,) = _of_places(job, Wanted(), there)
        assert found.name == "b"
