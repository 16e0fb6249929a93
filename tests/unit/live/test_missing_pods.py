"""Pods of a controller that do not exist, since the API server refuses them."""

from typing import Any

import pytest

from alnair.live.missing_pods import CreationEvent, missing, wanted_pods

QUOTA = 'pods "web-2" is forbidden: exceeded quota: few'
#: Seconds since the epoch of 2026-01-01T00:00:00Z.
MIDNIGHT = 1767225600.0


def made(kind: str, spec: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": "web", "uid": "1"}, "spec": spec, "status": status}


def event(message: str, second: int, uid: str = "1") -> CreationEvent:
    return CreationEvent({"name": "web", "uid": uid}, message, f"2026-01-01T00:00:{second:02}Z")


def test_the_newest_refusal_of_a_stateful_set_says_why_pods_are_missing() -> None:
    events = [event(QUOTA, 9), event("no such ServiceAccount", 3), event("another's", 30, "2")]
    said = missing(made("StatefulSet", {"replicas": 4}), [MIDNIGHT, MIDNIGHT + 1], events)
    assert said == (
        "StatefulSet web wants 4 pods, 2 exist, and the API server refuses to make another: "
        + QUOTA
    )


def test_a_refusal_before_the_last_pod_was_made_is_over() -> None:
    web = made("StatefulSet", {"replicas": 3})
    assert missing(web, [MIDNIGHT + 9], [event(QUOTA, 3)]) == ""
    assert missing(web, [MIDNIGHT], [event(QUOTA, 3)])


def test_a_controller_that_has_its_pods_or_is_not_refused_lacks_none() -> None:
    web = made("StatefulSet", {"replicas": 2})
    assert missing(web, [MIDNIGHT, MIDNIGHT], [event(QUOTA, 3)]) == ""
    assert missing(web, [MIDNIGHT], []) == ""
    assert missing(made("PodGroup", {}), [MIDNIGHT], [event(QUOTA, 3)]) == ""


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
def test_a_condition_says_why_replicas_are_missing(kind: str) -> None:
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}
    condition["message"] = QUOTA
    web = made(kind, {"replicas": 3}, conditions=[condition])
    assert f"{kind} web wants 3 pods, 1 exists, and" in missing(web, [MIDNIGHT], [])
    # Those of a new template, while the former ones all exist.
    assert missing(web, [MIDNIGHT] * 3, []).endswith(QUOTA)
    condition["status"] = "False"
    assert missing(web, [MIDNIGHT], []) == ""


@pytest.mark.parametrize(
    ("spec", "succeeded", "wanted"),
    [
        ({"parallelism": 4, "completions": 8}, 0, 4),
        ({"parallelism": 4, "completions": 8}, 6, 2),
        ({"completions": 8}, 0, 1),
        ({"parallelism": 4}, 0, 4),
        ({"parallelism": 4}, 1, None),
        ({"parallelism": 4, "suspend": True}, 0, None),
    ],
)
def test_a_job_wants_as_many_pods_as_it_has_yet_to_complete(
    spec: dict[str, Any], succeeded: int, wanted: int | None
) -> None:
    assert wanted_pods(made("Job", spec, succeeded=succeeded)) == wanted


def test_replicas_are_one_without_a_number() -> None:
    assert wanted_pods(made("Deployment", {})) == 1
    assert wanted_pods(made("Deployment", {"replicas": 0})) == 0
