"""Who judges upgrades sees what it is there to see: a judge that cannot say no proves nothing."""

from typing import Any, cast

import pytest

from alnair.kube.client import Client
from alnair.kube.informer import Change, ChangeKind
from alnair.kube.resources import Manifest
from kit.upgrades.leaders import Leases, Term, Write, judge
from kit.upgrades.pod_watch import Course, PodWatch

NOBODY = cast("Client", None)
SCHEDULER = "alnair-scheduler"


def write(pod: str, at: float) -> Write:
    """A binding."""
    return Write(SCHEDULER, pod, at, "create/pods/binding/p")


def leases(*terms: Term) -> Leases:
    """What was seen of the scheduler's Lease."""
    found = Leases(NOBODY)
    found.terms[SCHEDULER] = list(terms)
    return found


@pytest.mark.parametrize(
    ("writes", "said"),
    [
        ([write("a", 1), write("a", 9), write("b", 12)], []),
        ([write("a", 1), write("b", 12), write("a", 9)], ["after b had begun"]),
        ([write("a", 11)], ["did not lead then"]),
        ([write("c", 5)], ["did not lead then"]),
    ],
)
def test_a_decision_of_one_who_does_not_lead_is_found(writes: list[Write], said: list[str]) -> None:
    seen = leases(Term("a", 0, 10), Term("", 10, 11), Term("b", 11))
    faults = judge(seen, writes)
    assert len(faults) == len(said)
    assert all(text in fault for text, fault in zip(said, faults, strict=True))


def lease(holder: str, second: int, acquired: int) -> Manifest:
    """The Lease with this holder."""
    spec = {
        "holderIdentity": holder,
        "renewTime": f"2026-01-01T00:00:{second:02}Z",
        "acquireTime": f"2026-01-01T00:00:{acquired:02}Z",
        "leaseDurationSeconds": 15,
    }
    return {"metadata": {"name": SCHEDULER}, "spec": spec}


@pytest.mark.parametrize(
    ("given_back", "at", "faults"), [(True, 3, 0), (False, 20, 0), (False, 10, 1)]
)
def test_a_lease_that_is_taken_too_early_is_found(given_back: bool, at: int, faults: int) -> None:
    seen = Leases(NOBODY)
    course = [lease("a", 0, 0), *([lease("", 2, 0)] if given_back else []), lease("b", at, at)]
    before = None
    for found in course:
        kind = ChangeKind.MODIFIED if before else ChangeKind.ADDED
        seen._hear(Change(kind, ("", SCHEDULER), before, found))
        before = found
    assert len(judge(seen, [])) == faults
    assert [one.holder for one in seen.terms[SCHEDULER] if one.holder] == ["a", "b"]


def pod(phase: str = "Running", container: str = "c-1", **status: Any) -> Manifest:
    """A pod with one container."""
    state = {"running": {}} if phase == "Running" else {"terminated": {}}
    one = {"name": "main", "containerID": container, "state": state, "restartCount": 0}
    meta = {"name": "p", "namespace": "n"}
    whole = {"phase": phase, "containerStatuses": [one | status.pop("container_status", {})]}
    return {"metadata": meta, "spec": {"nodeName": "node"}, "status": whole | status}


@pytest.mark.parametrize(
    ("then", "why"),
    [
        (pod(), ""),
        (pod("Failed", reason="UnexpectedAdmissionError"), "UnexpectedAdmissionError"),
        (pod(container="c-2"), "containers ended"),
        (pod(container_status={"restartCount": 1}), "started again"),
        ({**pod(), "metadata": {"deletionTimestamp": "now"}}, "Running"),
        (None, "nobody deleted it"),
    ],
)
def test_a_pod_that_is_lost_is_found(then: Manifest | None, why: str) -> None:
    watch = PodWatch(NOBODY)
    watch.courses["n", "p"] = Course(0.0, is_real=True)
    for new in (pod(), then):
        watch._hear(Change(ChangeKind.MODIFIED, ("n", "p"), None, new))
    watch.end()
    assert why in watch.lost.get("n/p", "")
    assert bool(watch.lost) == bool(why)


def test_a_pod_that_never_starts_is_lost() -> None:
    watch = PodWatch(NOBODY)
    watch.courses["n", "p"] = Course(0.0, is_real=False)
    watch.courses["n", "q"] = Course(0.0, is_real=False, bound=1.0)
    watch.end()
    assert watch.lost == {"n/p": "it is not bound", "n/q": "it does not start"}
