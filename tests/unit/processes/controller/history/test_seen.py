"""What the history keeps of a pod: its GPUs, its outcome, its user, and whether it is an agent."""

from typing import Any

import msgspec
import pytest

from alnair.live.recording.record_lines import NodeRecord
from alnair.model import names
from alnair.model.nodes import Gpu
from alnair.processes.controller.history.seen import (
    PodSeen,
    RankedPodWire,
    SeePods,
    job_row,
    pod_row,
)

NODE = NodeRecord(name="n", model="T4", gpus=(Gpu("G", 0, "T4", 16384),))


def seen(
    limits: dict[str, str] | None = None,
    status: dict[str, Any] | None = None,
    node: str | None = "n",
    read: SeePods | None = None,
    **meta: Any,
) -> PodSeen:
    container = {"name": "c", "resources": {"limits": limits or {}, "requests": limits or {}}}
    container["ports"] = [{"containerPort": 9466}]
    pod = {
        "metadata": {
            "name": "p", "namespace": "red", "uid": "u",
            "creationTimestamp": "2026-01-01T00:00:00Z", **meta,
        },
        "spec": {"containers": [container], "nodeName": node},
        "status": status or {"phase": "Running"},
    }  # fmt: skip
    return (read or SeePods())(msgspec.convert(pod, RankedPodWire))


@pytest.mark.parametrize(
    ("limits", "gpus"),
    [
        ({}, 0.0),
        ({names.GPU: "2"}, 2.0),
        # A quarter of the memory is more than a tenth of the compute.
        ({names.VGPU_MEMORY: "4096", names.VGPU_COMPUTE: "10"}, 0.25),
        ({names.VGPU_MEMORY: "1024", names.VGPU_COMPUTE: "50"}, 0.5),
    ],
)
def test_a_slice_counts_as_the_larger_of_its_parts(limits: dict[str, str], gpus: float) -> None:
    row = pod_row(seen(limits), "job", NODE, 0.0)
    assert row.gpus == gpus
    assert row.gpu_model == ("T4" if gpus else "")


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ({"phase": "Running"}, ""),
        ({"phase": "Succeeded"}, "completed"),
        ({"phase": "Failed"}, "failed"),
        ({"phase": "Failed", "reason": "Evicted"}, "evicted"),
        ({"phase": "Failed", "reason": "NodeLost"}, "lost"),
    ],
)
def test_a_pod_says_how_it_ended(status: dict[str, Any], outcome: str) -> None:
    row = pod_row(seen(status=status), "job", NODE, 2e9)
    assert row.outcome == outcome
    assert row.ended == (2e9 if outcome else None)


#: A pod that is told to end: by its user, and then by the kubelet, when it has ended.
ASKED = {"deletionTimestamp": "2026-01-01T00:01:10Z", "deletionGracePeriodSeconds": 30}
GOES = {"deletionTimestamp": "2026-01-01T00:00:57Z", "deletionGracePeriodSeconds": 0}


@pytest.mark.parametrize(
    ("ended", "outcome"), [("00:00:39", "failed"), ("00:00:40", "deleted"), ("00:00:55", "deleted")]
)
def test_a_pod_that_is_deleted_has_not_failed_by_ending_then(ended: str, outcome: str) -> None:
    terminated = {"finishedAt": f"2026-01-01T{ended}Z", "exitCode": 143}
    status = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": terminated}}]}
    read = SeePods()
    for meta in (ASKED, GOES):
        found = seen(status=status, read=read, **meta)
        assert pod_row(found, "job", NODE, 2e9).outcome == outcome
    # What ended by itself, and is deleted afterwards.
    for meta in ({}, GOES):
        assert pod_row(seen(status=status, **meta), "job", NODE, 2e9).outcome == "failed"


def test_a_pod_began_when_its_first_container_did() -> None:
    times = [("2026-01-01T00:00:09Z", "2026-01-01T00:00:20Z"), ("2026-01-01T00:00:05Z", None)]
    states = [
        {"state": {"terminated": {"startedAt": begin, "finishedAt": end}}}
        if end
        else {"state": {"running": {"startedAt": begin}}}
        for begin, end in times
    ]
    row = pod_row(seen(status={"phase": "Running", "containerStatuses": states}), "j", NODE, 0.0)
    assert row.started == row.created + 5.0


def test_a_pod_says_when_it_was_bound_and_until_then_why_not() -> None:
    at = "2026-01-01T00:01:00Z"
    waits = {"type": "PodScheduled", "status": "False", "message": "no GPU free"}
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
    rows = [
        pod_row(seen(status={"conditions": [one]}, node=node), "job", NODE, 0.0)
        for one, node in ((waits, None), (bound, "n"))
    ]
    told = [(row.bound and row.bound - row.created, row.waited) for row in rows]
    assert told == [(None, "no GPU free"), (60.0, "")]


def test_the_user_is_the_label_or_the_namespace() -> None:
    for labels, user in (({names.USER: "ann"}, "ann"), ({}, "red")):
        pod = seen(labels=labels)
        assert job_row([pod.owner], pod).user == user


def test_an_agent_is_a_pod_of_our_own_namespace_alone() -> None:
    labels = {"app.kubernetes.io/name": "alnair", "app.kubernetes.io/component": "agent"}
    status = {"phase": "Running", "podIP": "10.0.0.7"}
    ours = seen(status=status, labels=labels, namespace=names.NAMESPACE).agent
    assert ours is not None
    assert (ours.node, ours.address, ours.port) == ("n", "10.0.0.7", 9466)
    # Anybody may call a pod of his so.
    assert seen(status=status, labels=labels).agent is None
