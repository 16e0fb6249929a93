"""What decisions see of the objects of training jobs."""

from typing import Any

import msgspec
import pytest

from alnair.elastic.observed import Ending
from alnair.model import names
from alnair.processes.controller.elastic import children

META = {"name": "elastichorovodjob-a-workers-3", "namespace": "team", "uid": "u"}
LABELS = {"ElasticHorovodJob": "a", "role": "worker"}


def pod(status: dict[str, Any], **meta: Any) -> children.ChildPod:
    manifest = {"metadata": {**META, "labels": LABELS, **meta}, "spec": {}, "status": status}
    return children.project_pod(msgspec.convert(manifest, children.PodWire))


def batch_job(*conditions: dict[str, str]) -> children.ChildSet:
    manifest = {
        "metadata": {**META, "labels": {"ElasticTorchJob": "b", "role": "worker"}},
        "spec": {"parallelism": 4},
        "status": {"conditions": [*conditions]},
    }
    return children.project_batch_job(msgspec.convert(manifest, children.BatchJobWire))


def group(*conditions: dict[str, str]) -> children.ChildGroup:
    full = [{"message": "words", "lastTransitionTime": "", **one} for one in conditions]
    manifest = {"metadata": {**META, "labels": LABELS}, "status": {"conditions": full}}
    return children.project_group(msgspec.convert(manifest, children.GroupWire))


def test_a_pod_says_whose_it_is_and_how_it_is() -> None:
    ready = pod({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
    assert (ready.job, ready.index) == (("ElasticHorovodJob", "team", "a"), 3)
    assert (ready.ready, ready.running, ready.ended, ready.problem) == (True, True, False, "")
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    assert pod({"containerStatuses": [{"state": state}]}).since == 1767225600.0
    assert ready.since == 0.0
    assert pod({}, deletionTimestamp="2026-01-01T00:00:00Z").leaving
    assert pod({}, labels={}).job is None


@pytest.mark.parametrize(
    ("phase", "codes", "policy", "ends"),
    [
        ("Running", [0], "Never", (True, True)),
        ("Running", [0, 1], "Never", (True, False)),
        ("Running", [0, None], "Never", (False, False)),
        ("Running", [0], "Always", (False, False)),
        ("Pending", [], "Never", (False, False)),
        ("Succeeded", [], "Never", (True, True)),
        ("Failed", [0], "Never", (True, False)),
    ],
)
def test_a_pod_is_over_once_its_containers_have_ended_for_good(
    phase: str, codes: list[int | None], policy: str, ends: tuple[bool, bool]
) -> None:
    states = [{"running": {}} if c is None else {"terminated": {"exitCode": c}} for c in codes]
    manifest = {
        "metadata": {**META, "labels": LABELS},
        "spec": {"restartPolicy": policy},
        "status": {"phase": phase, "containerStatuses": [{"state": one} for one in states]},
    }
    seen = children.project_pod(msgspec.convert(manifest, children.PodWire))
    assert (seen.over, seen.completed) == ends


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("ImagePullBackOff", True),
        ("ErrImagePull", True),
        ("InvalidImageName", True),
        ("CreateContainerConfigError", True),
        ("CrashLoopBackOff", True),
        ("ContainerCreating", False),
        ("PodInitializing", False),
    ],
)
def test_what_keeps_a_container_from_starting_is_told_and_its_start_is_not(
    reason: str, told: bool
) -> None:
    waiting = {"state": {"waiting": {"reason": reason, "message": "why"}}}
    seen = pod({"phase": "Pending", "containerStatuses": [waiting]})
    assert seen.problem == (f"{reason}: why" if told else "")


def test_a_job_has_ended_when_it_is_complete_or_has_failed() -> None:
    assert batch_job().ending is None
    assert batch_job({"type": "FailureTarget", "status": "True"}).ending is None
    done = {"type": "Complete", "status": "True", "reason": "R", "message": "m"}
    assert batch_job(done).ending == Ending(succeeded=True, reason="R", message="m")
    assert batch_job({**done, "type": "Failed"}).ending == Ending(False, "R", "m")


def test_a_gang_that_has_been_placed_or_fits_nowhere_is_known() -> None:
    refused = group({"type": "Scheduled", "status": "False", "reason": "Unschedulable"})
    assert (refused.placed, refused.refusal) == (False, "words")
    waiting = group({"type": "Scheduled", "status": "False", "reason": "Waiting"})
    assert (waiting.placed, waiting.refusal) == (False, "")
    once = {"type": "InitiallyScheduled", "status": "True", "reason": "EnoughScheduled"}
    shrunk = group(once, {"type": "Scheduled", "status": "False", "reason": "Unschedulable"})
    assert (shrunk.placed, shrunk.refusal) == (True, "words")


def test_a_stateful_set_says_where_new_pods_do_not_go_and_whether_it_was_read() -> None:
    def seen(read: int, **annotations: str) -> children.ChildSet:
        metadata = {**META, "labels": LABELS, "generation": 3, "annotations": annotations}
        made = {
            "metadata": metadata,
            "spec": {"replicas": 2},
            "status": {"observedGeneration": read},
        }
        return children.project_set(msgspec.convert(made, children.StatefulSetWire))

    assert (seen(3).avoids, seen(3).settled) == ((), True)
    assert seen(2, **{names.LEAVE_NODES: "a,b"}).avoids == ("a", "b")
    assert not seen(2).settled
