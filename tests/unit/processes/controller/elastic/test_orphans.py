"""Pods whose maker is gone are removed: after a while, and if the API server says so, too."""

import json
from typing import Any

import msgspec
import pytest

from alnair.kube.client import Listing
from alnair.kube.errors import NotFound, ServerUnavailable, TooManyRequests
from alnair.kube.informer import Change, ChangeKind
from alnair.processes.controller.elastic import cache, children, orphans
from alnair.processes.controller.elastic.cache import JobCache
from alnair.processes.controller.elastic.operator import TrainingJobOperator
from alnair.processes.controller.elastic.orphans import PATIENCE, Orphan, Orphans
from alnair.processes.controller.elastic.work_queue import WorkQueue

POD = Orphan("a-workers-0", "pod", "former", "a-workers", is_set=True)


class FakeClient:
    """Of an API server with at most one maker of pods."""

    def __init__(self, maker: str | None = None) -> None:
        self.maker, self.evicted, self.is_full = maker, list[tuple[str, str]](), False
        self.released: list[tuple[str, dict[str, Any]]] = []

    async def get(self, resource: Any, name: str, namespace: str) -> Any:
        if self.maker is None:
            raise NotFound(404, "NotFound", name)
        return orphans._Maker(orphans.ObjectMeta(uid=self.maker))

    async def raw(self, verb: str, path: str, *, body: bytes, content_type: str) -> bytes:
        self.released.append((path, json.loads(body)["metadata"]))
        return b""

    async def evict(self, namespace: str, name: str, uid: str) -> None:
        if self.is_full:
            raise TooManyRequests(429, "TooManyRequests", "a budget")
        self.evicted.append((name, uid))


def watching(client: Any) -> Orphans:
    return Orphans(client)


@pytest.mark.parametrize("maker", [None, "made anew"])
async def test_a_pod_is_evicted_once_its_maker_has_been_gone_for_long(maker: str | None) -> None:
    client = FakeClient(maker)
    looking = watching(client)
    assert await looking.remove("job", "team", [POD], 100.0) == 100.0 + PATIENCE
    assert await looking.remove("job", "team", [POD], 105.0) == 100.0 + PATIENCE
    assert client.evicted == []
    again = await looking.remove("job", "team", [POD], 100.0 + PATIENCE)
    assert client.evicted == [("a-workers-0", "pod")]
    assert again is not None
    assert await looking.remove("job", "team", [], again) is None


async def test_a_pod_that_its_job_has_forgotten_to_let_go_is_let_go() -> None:
    client = FakeClient("made anew")
    looking = watching(client)
    held = Orphan("a-workers-0-x", "pod", "former", "a-workers", is_set=False, held=True)
    await looking.remove("job", "team", [held], 100.0)
    assert client.released == []
    await looking.remove("job", "team", [held], 100.0 + PATIENCE)
    finalizers = ["batch.kubernetes.io/job-tracking"]
    patch = {"uid": "pod", "$deleteFromPrimitiveList/finalizers": finalizers}
    assert client.released == [("/api/v1/namespaces/team/pods/a-workers-0-x", patch)]
    assert client.evicted == []


async def test_a_pod_stays_whose_maker_is_only_news_that_is_late() -> None:
    client = FakeClient("former")
    looking = watching(client)
    for now in (100.0, 120.0):
        await looking.remove("job", "team", [POD], now)
    assert client.evicted == []


async def test_a_pod_that_found_a_maker_in_between_has_all_the_time_again() -> None:
    client = FakeClient()
    looking = watching(client)
    for now, found in ((100.0, [POD]), (105.0, []), (111.0, [POD]), (120.0, [POD])):
        await looking.remove("job", "team", found, now)
    assert client.evicted == []


async def test_what_a_disruption_budget_keeps_is_tried_again() -> None:
    client = FakeClient()
    client.is_full = True
    looking = watching(client)
    await looking.remove("job", "team", [POD], 100.0)
    again = await looking.remove("job", "team", [POD], 110.0)
    assert again is not None
    assert again > 110.0
    client.is_full = False
    await looking.remove("job", "team", [POD], again)
    assert client.evicted == [("a-workers-0", "pod")]


# --- the training job itself is gone --------------------------------------------------------------

KEY = ("ElasticTorchJob", "team", "a")
LEFT = {
    "metadata": {
        "name": "a-0",
        "namespace": "team",
        "uid": "pod",
        "labels": {"ElasticTorchJob": "a", "role": "worker"},
        "ownerReferences": [{"kind": "Job", "name": "w", "uid": "gone", "controller": True}],
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": [children.TRACKED],
    },
    "spec": {},
}


async def test_pods_are_let_go_whose_training_job_went_while_nobody_saw_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client: Any = FakeClient()
    operator = TrainingJobOperator(client)
    operator._queue = WorkQueue()
    pod = children.project_pod(msgspec.convert(LEFT, children.PodWire))
    told = operator._cache._child("pod", operator._cache._pods)
    told(Change(ChangeKind.ADDED, ("team", "a-0"), None, pod))
    assert (await operator._queue.take())[0] == KEY
    await operator._reconcile(KEY)
    assert client.released == []
    assert operator._queue._timers.keys() == {KEY}, "it is looked at again"
    monkeypatch.setattr(orphans, "PATIENCE", 0.0)
    await operator._reconcile(KEY)
    assert [path for path, _ in client.released] == ["/api/v1/namespaces/team/pods/a-0"]
    operator._queue.close()


class Answering:
    """Of an API server that is there at the second try, with these pods."""

    def __init__(self, *pods: Any) -> None:
        found = [msgspec.convert(one, children.PodWire) for one in pods]
        self.answers = [ServerUnavailable(503, "", "it starts"), Listing(found, "1")]

    async def list(self, *_: Any, **__: Any) -> Any:
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


@pytest.mark.parametrize("pods", [[], [LEFT]])
async def test_objects_are_followed_also_where_only_pods_are_left_of_jobs(
    pods: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_RETRY", 0.0)
    client: Any = Answering(*pods)
    known = JobCache(client, lambda _: None)
    await known._look_for_pods()
    assert known.any.is_set() == bool(pods)
