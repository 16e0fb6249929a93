"""Which objects count as a training job's: its own, and not those of a former one of its name."""

from typing import Any

import msgspec
import pytest

from alnair.elastic.desired import Child
from alnair.elastic.observed import Ending
from alnair.kube.informer import Change, ChangeKind
from alnair.kube.objects.training_jobs import ElasticTorchJobWire, project_training_job
from alnair.model import names
from alnair.processes.controller.elastic import children
from alnair.processes.controller.elastic.cache import JobCache
from alnair.processes.controller.elastic.complaints import Suspect
from alnair.processes.controller.elastic.orphans import Orphan
from kit import training_jobs as jobs

KEY = ("ElasticTorchJob", "team", "a")
LABELS = {"ElasticTorchJob": "a", "role": "worker"}
DONE = {"type": "Complete", "status": "True", "reason": "R", "message": "m"}


class Cluster:
    """What the informers would tell the cache."""

    def __init__(self) -> None:
        self.marked: list[Any] = []
        client: Any = None
        self.cache = JobCache(client, self.marked.append)

    def job(self, uid: str) -> None:
        made = project_training_job(msgspec.convert(jobs.torch("a"), ElasticTorchJobWire))
        made = msgspec.structs.replace(made, namespace="team", uid=uid)
        self.cache._job(Change(ChangeKind.ADDED, ("team", "a"), None, made))

    def workers(self, uid: str, owner: str, *conditions: dict[str, str]) -> None:
        """The Job of the workers."""
        wire = {
            "metadata": self._meta("elastictorchjob-a-workers", uid, owner),
            "spec": {"parallelism": 2},
            "status": {"conditions": [*conditions]},
        }
        made = children.project_batch_job(msgspec.convert(wire, children.BatchJobWire))
        told = self.cache._child("job", self.cache._sets)
        told(Change(ChangeKind.ADDED, ("team", f"{uid}-workers"), None, made))

    def pod(
        self,
        name: str,
        owner: str,
        losses: str = "",
        *,
        held: bool = False,
        role: str = "worker",
        **status: Any,
    ) -> None:
        meta = self._meta(name, f"uid-{name}", owner)
        meta["labels"] = LABELS | {"role": role}
        meta["annotations"] = {children.LOSSES: losses} if losses else {}
        if held:
            meta |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [children.TRACKED]}
        wire = {
            "metadata": meta,
            "spec": {"nodeName": "n", "restartPolicy": "Never"},
            "status": status,
        }
        made = children.project_pod(msgspec.convert(wire, children.PodWire))
        told = self.cache._child("pod", self.cache._pods)
        told(Change(ChangeKind.ADDED, ("team", name), None, made))

    def _meta(self, name: str, uid: str, owner: str) -> dict[str, Any]:
        reference = {"uid": owner, "controller": True}
        meta = {"name": name, "namespace": "team", "uid": uid, "labels": LABELS}
        return {**meta, "ownerReferences": [reference]}


READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def test_what_a_former_job_of_the_name_has_left_is_not_taken_for_the_jobs_own() -> None:
    cluster = Cluster()
    cluster.workers("old-set", "old", DONE)
    cluster.pod("a-0", "old-set", **READY)
    cluster.job("new")
    seen = cluster.cache.observed(KEY, None, has_keys=False)
    assert (seen.size, seen.ending, seen.staying) == (None, None, ())
    assert [worker.leaving for worker in seen.workers] == [True]
    cluster.workers("set", "new")
    cluster.pod("a-1", "set", **READY)
    seen = cluster.cache.observed(KEY, None, has_keys=False)
    assert (seen.size, seen.ending, [w.index for w in seen.staying]) == (2, None, [1])
    cluster.workers("set", "new", DONE)
    ending = cluster.cache.observed(KEY, None, has_keys=False).ending
    assert ending == Ending(succeeded=True, reason="R", message="m")


def test_workers_whose_containers_have_ended_well_are_counted_and_await_nothing() -> None:
    cluster = Cluster()
    cluster.job("new")
    cluster.workers("set", "new")
    exits = [{"state": {"terminated": {"exitCode": 0}}}]
    cluster.pod("a-0", "set", phase="Running", containerStatuses=exits)
    cluster.pod("a-1", "set", phase="Succeeded")
    cluster.pod("a-2", "former", phase="Succeeded")
    seen = cluster.cache.observed(KEY, None, has_keys=False)
    assert (seen.completed, seen.workers) == (2, [])


@pytest.mark.parametrize(
    ("phases", "well"),
    [
        ([], None),
        (["Failed"], False),
        (["Failed", "Succeeded"], True),
        (["Failed", "Running"], None),
    ],
)
def test_a_launcher_without_a_pod_says_how_its_last_one_has_ended(
    phases: list[str], well: bool | None
) -> None:
    cluster = Cluster()
    cluster.job("new")
    made = children.ChildSet(KEY, "new", "set", "launcher", 1)
    cluster.cache._child("job", cluster.cache._sets)(
        Change(ChangeKind.ADDED, ("team", "launcher"), None, made)
    )
    for number, phase in enumerate(phases):
        cluster.pod(f"a-{number}", "set", phase=phase, role="launcher")
    launcher = cluster.cache.observed(KEY, None, has_keys=False).launcher
    assert launcher is not None
    assert launcher.ended_well is well


def test_what_does_not_get_on_is_suspected_until_it_does() -> None:
    cluster = Cluster()
    cluster.job("new")
    assert cluster.cache.suspects(KEY) == []
    cluster.workers("set", "new")
    made = Suspect("worker", "Job", "elastictorchjob-a-workers", "set")
    assert cluster.cache.suspects(KEY) == [made]
    cluster.pod("a-0", "set", phase="Pending")
    slow = Suspect("worker", "Pod", "a-0", "uid-a-0")
    assert cluster.cache.suspects(KEY) == [made, slow]
    cluster.pod("a-0", "set", **READY)
    cluster.pod("a-1", "set", **READY)
    assert cluster.cache.suspects(KEY) == []


def test_lost_workers_are_those_that_failed_where_others_were_lost_before() -> None:
    cluster = Cluster()
    cluster.job("new")
    cluster.workers("set", "new")
    cluster.pod("runs", "set", losses="3", **READY)
    cluster.pod("first", "set", phase="Failed")
    cluster.pod("forgotten", "set", losses="0", phase="Failed")
    cluster.pod("unknown", "set", losses="-1", phase="Failed")
    cluster.pod("former", "old-set", losses="3", phase="Failed")
    assert cluster.cache.lost(KEY) == []
    cluster.pod("again", "set", losses="3", phase="Failed")
    assert cluster.cache.lost(KEY) == ["again"]
    cluster.workers("set", "new", DONE)
    assert cluster.cache.lost(KEY) == []


@pytest.mark.parametrize("finished", [True, False])
def test_a_job_that_is_gone_or_has_ended_has_no_suspects(*, finished: bool) -> None:
    cluster = Cluster()
    cluster.workers("set", "new")
    if finished:
        cluster.job("new")
        cluster.workers("set", "new", DONE)
    assert cluster.cache.suspects(KEY) == []


def test_pods_whose_maker_is_not_known_are_orphans_whichever_job_they_were_of() -> None:
    cluster = Cluster()
    cluster.pod("a-0", "former-set", **READY)
    cluster.pod("a-1", "set", **READY)
    assert cluster.cache.orphans(KEY) == []  # there is no such job to ask it for
    cluster.job("new")
    cluster.workers("set", "new")
    found = cluster.cache.orphans(KEY)
    assert found == [Orphan("a-0", "uid-a-0", "former-set", "elastictorchjob-a-workers", False)]
    cluster.pod("a-0", "former-set", phase="Failed")
    assert cluster.cache.orphans(KEY) == []  # its log stays
    cluster.pod("a-0", "former-set", held=True, phase="Failed")
    assert [one.held for one in cluster.cache.orphans(KEY)] == [True]
    cluster.workers("former-set", "old")
    assert cluster.cache.orphans(KEY) == []  # its maker goes first


def test_of_a_job_that_is_gone_those_pods_are_orphans_that_wait_for_their_maker() -> None:
    cluster = Cluster()
    cluster.pod("a-0", "gone", held=True, phase="Failed")
    cluster.pod("a-1", "gone", **READY)
    assert cluster.cache.orphans(KEY) == [
        Orphan("a-0", "uid-a-0", "gone", "elastictorchjob-a-workers", False, held=True)
    ]
    assert cluster.cache.known() == {KEY}
    cluster.workers("gone", "old")
    assert cluster.cache.orphans(KEY) == []  # its maker goes first


def test_objects_tell_what_was_applied_of_them_but_not_those_of_a_former_job() -> None:
    cluster = Cluster()
    cluster.job("new")

    def meta(name: str, owner: str, digest: str) -> dict[str, Any]:
        annotations = {names.APPLIED: digest} if digest else {}
        return {**cluster._meta(name, f"uid-{name}", owner), "annotations": annotations}

    service = Child("Service", "elastictorchjob-a")
    told = cluster.cache._child("part", cluster.cache._parts["Service"])
    for owner, digest in (("old", "d0"), ("new", "d1")):
        wire = msgspec.convert({"metadata": meta(service.name, owner, digest)}, children.PartWire)
        told(Change(ChangeKind.ADDED, ("team", service.name), None, children.project_part(wire)))
        assert cluster.cache.digests(KEY) == ({service: "d1"} if owner == "new" else {})
    group = Child("PodGroup", "podgroup-etjob-a")
    about = cluster.cache._child("group", cluster.cache._groups)
    for digest in ("", "d2"):
        made = msgspec.convert({"metadata": meta(group.name, "new", digest)}, children.GroupWire)
        about(Change(ChangeKind.ADDED, ("team", "g"), None, children.project_group(made)))
    assert cluster.cache.digests(KEY) == {service: "d1", group: "d2"}
    assert not cluster.cache.has_workers(KEY)
    cluster.workers("set", "new")
    assert cluster.cache.has_workers(KEY)
