"""What the writer makes of pods that it sees, before anything is asked of a server."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from alnair.history.database import opening, queries
from alnair.history.database.queries import Filter
from alnair.kube.client import Client
from alnair.kube.informer import Change, ChangeKind
from alnair.model import names
from alnair.model.owners import OwnerRef
from alnair.processes.controller.history.seen import PodSeen, RankedPodWire, SeePods
from alnair.processes.controller.history.store import Store
from alnair.processes.controller.history.writer import LifeWriter

GROUP = OwnerRef("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "red", "gang", "group-uid")


def seen(**meta: Any) -> PodSeen:
    pod = {
        "metadata": {"name": "p", "namespace": "red", "uid": "u", **meta},
        "spec": {"containers": [{"name": "c"}]},
        "status": {"phase": "Running"},
    }
    return SeePods()(msgspec.convert(pod, RankedPodWire))


def writer(tmp_path: Path) -> LifeWriter:
    nobody = cast("Client", None)
    groups = {("red", "gang"): GROUP}
    store = Store(str(tmp_path / "history.db"))
    return LifeWriter(nobody, store, lambda *key: groups.get(key))


def test_a_lone_pod_of_a_gang_is_its_pod_groups(tmp_path: Path) -> None:
    labels = {names.POD_GROUP_LABEL: "gang"}
    assert writer(tmp_path)._bottom(seen(labels=labels)).controller == GROUP
    other = {names.POD_GROUP_LABEL: "none"}
    assert writer(tmp_path)._bottom(seen(labels=other)).controller is None


def test_a_pod_of_a_gang_that_something_controls_is_that_ones(tmp_path: Path) -> None:
    owner = {
        "apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job-uid", "controller": True,
    }  # fmt: skip
    pod = seen(labels={names.POD_GROUP_LABEL: "gang"}, ownerReferences=[owner])
    found = writer(tmp_path)._bottom(pod).controller
    assert found is not None
    assert (found.group, found.kind, found.uid) == ("batch", "Job", "job-uid")


async def test_while_the_history_is_away_no_more_waits_than_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("alnair.processes.controller.history.writer.MOST", 10)
    away = tmp_path / "folder"
    away.write_text("a file is in the way")
    groups: dict[Any, OwnerRef] = {}
    store = Store(str(away / "history.db"))
    lives = LifeWriter(cast("Client", None), store, lambda *key: groups.get(key))
    lives.nodes.synced.set()
    lives.pods.synced.set()
    lives.pods._values.update({("red", "p"): seen()})
    writing = asyncio.create_task(lives.run_writes())
    for _ in range(3):
        await asyncio.sleep(0)  # it begins
    for number in range(100):
        pod = seen(uid=f"u{number}", name=f"p{number}")
        lives._pod(Change(ChangeKind.DELETED, ("red", f"p{number}"), pod, None))
    assert lives._pending is not None
    assert len(lives._pending) == 10
    # What went is forgotten, and what is there is found again by a look at all.
    away.unlink()
    await asyncio.wait_for(lives.settled(), 30)
    with opening.readable(str(away / "history.db")) as connection:
        found = queries.jobs(connection, Filter())
    assert {job.name for job in found} == {"p", *(f"p{number}" for number in range(90, 100))}
    writing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await writing
    store.close()
