"""The pods of a node, as a watch tells of them."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from alnair.kube.access.connection import Connection
from alnair.kube.client import Client
from alnair.kube.informer import Change, ChangeKind
from alnair.model import names
from alnair.model.api_types import GpuAssignment
from alnair.processes.agent.device_plugin.pods_on_node import PodsOnNode, PodWithContainers
from alnair.sharing.matching.node_state import PodOnNode
from kit.node_state import asks, pod_on_node, slice_of

KEY = ("team", "a")
A = pod_on_node("a", asks(memory=1_000))
GIVEN = GpuAssignment(1, "", {"main": [slice_of(0, 1_000)]})
OTHER = GpuAssignment(1, "", {"main": [slice_of(1, 1_000)]})


class Followed(PodsOnNode):
    """Told by the test what the API server would tell.

    Attributes:
        ended: Uids of which it was told that they ended.
    """

    def __init__(self) -> None:
        self.ended: list[str] = []
        super().__init__(Client(Connection("http://127.0.0.1:1")), "node", self.ended.append)

    def tell(self, old: PodOnNode | None, new: PodOnNode | None) -> None:
        self._change(Change(ChangeKind.MODIFIED, KEY, old, new))

    def read(
        self, annotations: Mapping[str, str], phase: str = "Running", **status: Any
    ) -> PodOnNode:
        limits = {names.VGPU_MEMORY: "1000", names.VGPU: "1"}
        found: dict[str, Any] = {
            "metadata": {
                "name": "a",
                "namespace": "team",
                "uid": "uid-a",
                "creationTimestamp": "2026-01-31T12:00:00Z",
                "annotations": annotations,
                "ownerReferences": [
                    {"kind": "Other", "name": "o"},
                    {"kind": "Job", "name": "j", "controller": True},
                ],
            },
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "resources": {"limits": limits},
                        "command": ["sh", "-c"],
                        "args": ["python train.py --model org/tiny-7b"],
                        "env": [
                            {"name": "DATA", "value": "s3://me:secret@bucket/train"},
                            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "k"}}},
                        ],
                        "volumeMounts": [
                            {"name": name, "mountPath": f"/{name}"}
                            for name in ("claim", "host", "share", "disk", "rest", "settings")
                        ],
                    }
                ],
                "volumes": [
                    {"name": "claim", "persistentVolumeClaim": {"claimName": "images"}},
                    {"name": "host", "hostPath": {"path": "/mnt/data", "type": ""}},
                    {"name": "share", "nfs": {"server": "files", "path": "/export"}},
                    {"name": "disk", "csi": {"driver": "fast.example.org"}},
                    {"name": "rest", "emptyDir": {}},
                    {"name": "settings", "configMap": {"name": "s"}},
                ],
            },
            "status": {"phase": phase, **status},
        }
        return self._read(msgspec.convert(found, PodWithContainers))


@pytest.fixture
def pods() -> Followed:
    return Followed()


def test_a_pod_is_read_with_its_assignment(pods: Followed) -> None:
    text = msgspec.json.encode(GpuAssignment(1, "2026-01-31T12:00:00Z", GIVEN.containers)).decode()
    found = pods.read({names.GPU_ASSIGNMENT: text})
    assert (found.uid, found.namespace, found.name) == ("uid-a", "team", "a")
    assert found.demand is not None
    assert found.demand.memory_mib == 1_000
    assert found.assigned == GIVEN.containers
    assert (found.assignment_problem, found.is_ended, found.is_leaving) == ("", False, False)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_ended_is_told_by_its_phase(pods: Followed, phase: str) -> None:
    assert pods.read({}, phase).is_ended


def test_a_pod_without_assignment_is_not_one_whose_assignment_cannot_be_read(
    pods: Followed,
) -> None:
    assert (pods.read({}).assignment, pods.read({}).assignment_problem) == (None, "")
    broken = pods.read({names.GPU_ASSIGNMENT: "{"})
    assert broken.assignment is None
    assert broken.assignment_problem
    empty = pods.read({names.GPU_ASSIGNMENT: '{"version":1,"time":"","containers":{}}'})
    assert empty.assignment is None
    assert empty.assignment_problem


def test_the_end_of_a_pod_is_told_once(pods: Followed) -> None:
    ended = replace(A, is_ended=True)
    pods.tell(None, A)
    assert not pods.ended
    pods.tell(A, ended)
    pods.tell(ended, ended)
    pods.tell(ended, None)
    assert pods.ended == [A.uid]
    pods.tell(None, A)
    pods.tell(A, None)
    assert pods.ended == [A.uid] * 2
    assert not pods.by_uid


def test_a_pod_of_the_same_name_is_another(pods: Followed) -> None:
    pods.tell(None, A)
    pods.tell(A, None)
    again = replace(A, uid="uid-again")
    pods.tell(None, again)
    assert list(pods.by_uid) == ["uid-again"]
    assert pods.owner(A.uid) is None
    owner = pods.owner("uid-again")
    assert owner is not None
    assert (owner.namespace, owner.name, owner.uid) == ("team", "a", "uid-again")


def test_what_was_written_holds_until_the_api_server_tells_of_it(pods: Followed) -> None:
    pods.tell(None, A)
    pods.wrote(A.uid, GIVEN)
    assert pods.by_uid[A.uid].assignment == GIVEN
    pods.tell(A, A)  # told before it was written
    assert pods.by_uid[A.uid].assignment == GIVEN
    told = replace(A, assignment=OTHER)
    pods.tell(A, told)
    assert pods.by_uid[A.uid].assignment == OTHER
    pods.tell(told, A)  # somebody removed it
    assert pods.by_uid[A.uid].assignment is None


def test_what_could_not_be_written_is_taken_back(pods: Followed) -> None:
    pods.tell(None, A)
    pods.wrote(A.uid, GIVEN)
    pods.wrote(A.uid, None)
    assert pods.by_uid[A.uid].assignment is None
    pods.tell(A, A)
    assert pods.by_uid[A.uid].assignment is None


def test_what_was_written_though_its_answer_was_lost_is_not_taken_back(pods: Followed) -> None:
    pods.tell(None, A)
    pods.wrote(A.uid, GIVEN)
    pods.tell(A, replace(A, assignment=GIVEN))
    pods.wrote(A.uid, None)
    assert pods.by_uid[A.uid].assignment == GIVEN


def test_what_is_written_for_a_pod_that_is_gone_is_forgotten(pods: Followed) -> None:
    pods.tell(None, A)
    pods.wrote(A.uid, GIVEN)
    pods.tell(A, None)
    pods.wrote(A.uid, GIVEN)
    pods.tell(None, A)
    assert pods.by_uid[A.uid].assignment is None


async def test_any_change_wakes_all_who_wait(pods: Followed) -> None:
    waiting = [asyncio.create_task(pods.changed(60.0)) for _ in range(3)]
    await asyncio.sleep(0)
    pods.tell(None, A)
    async with asyncio.timeout(30):
        await asyncio.gather(*waiting)
    await pods.changed(0.0)  # and without one the time ends it


def test_containers_are_known_by_the_runtimes_ids_and_a_pod_by_its_controller(
    pods: Followed,
) -> None:
    def status(name: str, container_id: str | None) -> dict[str, str]:
        return {"name": name} | ({"containerID": container_id} if container_id else {})

    found = pods.read(
        {},
        containerStatuses=[status("main", "containerd://a1"), status("waits", None)],
        initContainerStatuses=[status("first", "containerd://b2")],
    )
    assert found.containers == {"a1": "main", "b2": "first"}
    assert found.owner == ("Job", "j")


HASH = "0123456789abcdef" * 2


def mirror(hash_: str, copy: str = "") -> dict[str, str]:
    return {
        "kubernetes.io/config.hash": hash_,
        "kubernetes.io/config.mirror": copy or hash_,
    }


def test_a_pod_from_a_file_is_found_by_what_the_kubelet_calls_it(pods: Followed) -> None:
    pods.tell(None, pod_on_node("b"))
    assert pods.by_group() == pods.by_uid
    found = pods.read(mirror(HASH))
    pods.tell(None, found)
    assert set(pods.by_group()) == {"uid-b", HASH}
    pods.tell(found, None)
    assert set(pods.by_group()) == {"uid-b"}


def test_nobody_takes_another_pods_place_by_saying_that_it_is_from_a_file(pods: Followed) -> None:
    pods.tell(None, pod_on_node("b"))
    for annotations in (
        mirror("uid-b"),  # that of another pod
        mirror("6b2b1f5c-9c3e-4d7f-8a51-0f6f3f0c9e11"),
        mirror(HASH, "another"),
        {"kubernetes.io/config.hash": HASH},
    ):
        found = pods.read(annotations)
        pods.tell(None, found)
        assert pods.by_group() == pods.by_uid
        pods.tell(found, None)


def test_of_two_copies_of_a_pod_from_a_file_the_older_one_counts(pods: Followed) -> None:
    true = pods.read(mirror(HASH))
    pods.tell(None, true)
    false = msgspec.structs.replace(true, uid="false", created=true.created + 5)
    pods._from_files["false"] = HASH
    pods.tell(None, false)
    assert pods.by_group()[HASH] == true
    pods.tell(true, None)
    assert pods.by_group()[HASH] == false


def test_what_a_pod_works_on_is_read_and_nothing_secret() -> None:
    found = Followed().read({names.COUNT_CALLS: "true"})
    assert found.counts_calls
    assert not found.is_suspended
    assert Followed().read({names.VGPU_SUSPENDED: "true"}).is_suspended
    said = found.declared
    assert said.model.name is not None
    assert said.model.name.value == "org/tiny-7b"
    assert [(one.kind, one.where) for one in said.places] == [
        ("url", "s3://bucket/train"),
        ("persistentVolumeClaim", "images"),
        ("hostPath", "/mnt/data"),
        ("nfs", "files:/export"),
        ("csi", "fast.example.org"),
        ("emptyDir", "rest"),
    ]
    assert "secret" not in repr(found)
