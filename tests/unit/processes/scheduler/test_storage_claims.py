"""Storage before the Binding: what is written, what is waited for, and who waits with whom."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from copy import deepcopy
from typing import Any, cast

import msgspec
import pytest

from alnair.kube.client import Client
from alnair.kube.errors import Conflict, NotFound
from alnair.kube.objects import storage
from alnair.kube.resources import Manifest, Resource
from alnair.live.engine_feed import Feed
from alnair.model.action import Bind
from alnair.model.volumes import ClaimBinding
from alnair.processes.scheduler import storage_claims
from alnair.processes.scheduler.actuator import Actuator
from alnair.processes.scheduler.reporter import Reporter
from alnair.scheduler.engine import events
from kit import make

READ: dict[str, Callable[[Manifest], Any]] = {
    "PersistentVolumeClaim": lambda o: storage.project_claim(msgspec.convert(o, storage.ClaimWire)),
    "PersistentVolume": lambda o: storage.project_volume(
        msgspec.convert(o, storage.PersistentVolumeWire)
    ),
}


class Api:
    """Claims and volumes behind the few requests that are made, and the local copies of them."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Manifest] = {}
        self.bound: list[str] = []
        self.told: dict[str, str] = {}
        self.gone: set[str] = set()
        #: Called before each write, as somebody else who is quicker.
        self.rival: Callable[[str, str], None] = lambda kind, name: None

    def put(self, kind: str, name: str, spec: Manifest) -> None:
        meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
        self.objects[kind, name] = {"metadata": meta, "spec": spec}

    def change(self, kind: str, name: str, patch: Manifest) -> None:
        found = self.objects[kind, name]
        found["metadata"]["resourceVersion"] += "+"
        annotations = found["metadata"].setdefault("annotations", {})
        for key, value in patch.get("metadata", {}).get("annotations", {}).items():
            annotations[key] = value
            if value is None:
                del annotations[key]
        found["spec"].update(patch.get("spec", {}))

    def complete(self, name: str, volume: str) -> None:
        """Bind a claim as the controllers do."""
        done = {"metadata": {"annotations": {storage.BIND_COMPLETED: "yes"}}}
        self.change("PersistentVolumeClaim", name, {**done, "spec": {"volumeName": volume}})

    def annotations(self, name: str) -> dict[str, str]:
        """Annotations of a claim."""
        found = self.objects["PersistentVolumeClaim", name]["metadata"]
        return cast("dict[str, str]", found.get("annotations", {}))

    # --- as the client ---

    async def get(self, resource: Resource[Any], name: str, namespace: str = "") -> Manifest:
        if (resource.kind, name) not in self.objects:
            raise NotFound(404, "NotFound", f"{name} not found")
        return deepcopy(self.objects[resource.kind, name])

    async def merge_patch(
        self, resource: Resource[Any], name: str, patch: Manifest, namespace: str = ""
    ) -> None:
        self.rival(resource.kind, name)
        now = self.objects[resource.kind, name]["metadata"]["resourceVersion"]
        if patch["metadata"].pop("resourceVersion") != now:
            raise Conflict(409, "Conflict", "it changed")
        self.change(resource.kind, name, patch)

    async def bind(self, namespace: str, name: str, *_: object) -> None:
        self.bound.append(name)

    # --- as the feed ---

    def put_event(self, event: events.BindDone) -> None:
        self.told[event.uid.removeprefix("uid-default-")] = event.error

    def pod(self, pod: Any) -> object:
        return None if pod.name in self.gone else pod

    def node(self, name: str) -> object:
        return None if name in self.gone else make.node(name)

    def object(self, kind: str, namespace: str, name: str) -> Any:
        found = self.objects.get((kind, name))
        return READ[kind](found) if found else None


class _Copies:
    def __init__(self, api: Api) -> None:
        self.put = api.put_event
        self.pod, self.node, self.object = api.pod, api.node, api.object


@pytest.fixture
def api() -> Api:
    """Two claims and two volumes."""
    found = Api()
    for name in "cd":
        found.put("PersistentVolumeClaim", name, {})
    for name in "vw":
        found.put("PersistentVolume", name, {})
    return found


@pytest.fixture
async def actuator(api: Api) -> AsyncIterator[Actuator]:
    """An actuator at work."""
    calm = asyncio.Event()
    found = Actuator(
        cast("Client", api), cast("Feed", _Copies(api)), cast("Reporter", None), lambda: True, calm
    )
    work = asyncio.create_task(found.run())
    yield found
    work.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await work


def bind(name: str, claim: str = "", volume: str = "", together: str = "") -> Bind:
    """A Binding to node n that waits for a claim."""
    claims = (ClaimBinding("default", claim, f"uid-{claim}", volume),) if claim else ()
    return Bind(make.pod(name), "n", (), claims, 30.0, together)


async def until(check: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until the check holds."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_a_volume_is_set_aside_and_the_pod_bound_when_its_claim_is(
    api: Api, actuator: Actuator
) -> None:
    actuator.carry_out(bind("p", "c", "v"))
    actuator.carry_out(bind("plain"))
    volume = api.objects["PersistentVolume", "v"]
    await until(lambda: "claimRef" in volume["spec"] and api.bound)
    assert api.bound == ["plain"]
    assert volume["spec"]["claimRef"]["uid"] == "uid-c"
    assert volume["metadata"]["annotations"] == {storage.BOUND_BY_CONTROLLER: "yes"}
    api.complete("c", "v")
    await until(lambda: api.told.get("p") == "")
    assert api.bound == ["plain", "p"]


async def test_a_node_is_selected_and_a_provisioner_may_refuse_it(
    api: Api, actuator: Actuator
) -> None:
    actuator.carry_out(bind("p", "c"))
    await until(lambda: api.annotations("c").get(storage.SELECTED_NODE) == "n")
    await asyncio.sleep(0.2)  # the local copy was looked at
    api.change(
        "PersistentVolumeClaim", "c", {"metadata": {"annotations": {storage.SELECTED_NODE: None}}}
    )
    await until(lambda: "was refused" in api.told.get("p", ""))
    assert not api.bound


@pytest.mark.parametrize("volume", ["", "v"])
async def test_a_refusal_between_two_looks_is_found_too(
    api: Api, actuator: Actuator, monkeypatch: pytest.MonkeyPatch, volume: str
) -> None:
    monkeypatch.setattr(storage_claims, "UNSEEN", 0.05)
    taken_back: Manifest = {
        "metadata": {"annotations": {storage.SELECTED_NODE: None}},
        "spec": {"claimRef": None} if volume else {},
    }
    write = api.change

    def and_take_back(kind: str, name: str, patch: Manifest) -> None:
        write(kind, name, patch)
        write(kind, name, taken_back)

    monkeypatch.setattr(api, "change", and_take_back)
    actuator.carry_out(bind("p", "c", volume))
    await until(lambda: "was refused" in api.told.get("p", ""))
    assert not api.bound


async def test_a_volume_that_another_was_quicker_to_take_is_left_alone(
    api: Api, actuator: Actuator
) -> None:
    theirs = {"namespace": "default", "name": "theirs", "uid": "uid-theirs"}

    def rival(kind: str, name: str) -> None:
        api.change(kind, name, {"spec": {"claimRef": theirs}})

    api.rival = rival
    actuator.carry_out(bind("p", "c", "v"))
    await until(lambda: "belongs to another claim" in api.told.get("p", ""))
    assert api.objects["PersistentVolume", "v"]["spec"]["claimRef"] == theirs


async def test_writes_that_were_done_before_are_found_done(api: Api, actuator: Actuator) -> None:
    mine = {"namespace": "default", "name": "c", "uid": "uid-c"}
    api.change("PersistentVolume", "v", {"spec": {"claimRef": mine}})
    selected = {"metadata": {"annotations": {storage.SELECTED_NODE: "n"}}}
    api.change("PersistentVolumeClaim", "d", selected)
    before = deepcopy(api.objects)
    actuator.carry_out(bind("p", "c", "v"))
    actuator.carry_out(bind("q", "d"))
    await asyncio.sleep(0.2)
    assert api.objects == before
    api.complete("c", "v")
    api.complete("d", "w")
    await until(lambda: sorted(api.bound) == ["p", "q"])


@pytest.mark.parametrize(("gone", "text"), [("p", "pod is gone"), ("n", "node n is gone")])
async def test_nobody_waits_for_what_is_gone(
    api: Api, actuator: Actuator, gone: str, text: str
) -> None:
    actuator.carry_out(bind("p", "c"))
    await until(lambda: api.annotations("c"))
    api.gone.add(gone)
    await until(lambda: text in api.told.get("p", ""))


async def test_patience_ends(api: Api, actuator: Actuator) -> None:
    actuator.carry_out(msgspec.structs.replace(bind("p", "c"), patience=0.1))
    await until(lambda: "not bound after 0 s: claims default/c" in api.told.get("p", ""))


async def test_pods_of_a_gang_wait_for_each_others_storage(api: Api, actuator: Actuator) -> None:
    for one in (
        bind("p", "c", together="g"),
        bind("q", together="g"),
        bind("r", "d", together="g"),
    ):
        actuator.carry_out(one)
    await until(lambda: api.annotations("c") and api.annotations("d"))
    api.complete("c", "v")
    await asyncio.sleep(0.2)
    assert not api.bound
    api.complete("d", "w")
    await until(lambda: sorted(api.bound) == ["p", "q", "r"])


async def test_a_gang_of_which_one_gets_no_storage_is_not_begun(
    api: Api, actuator: Actuator
) -> None:
    del api.objects["PersistentVolumeClaim", "d"]
    for one in (
        bind("p", "c", together="g"),
        bind("q", together="g"),
        bind("r", "d", together="g"),
    ):
        actuator.carry_out(one)
    await until(lambda: api.annotations("c"))
    api.complete("c", "v")
    await until(lambda: len(api.told) == 3)
    assert not api.bound
    assert "another pod of its gang" in api.told["q"]
    assert "not found" in api.told["r"]


async def test_a_volume_that_was_made_elsewhere_sends_the_pod_back(
    api: Api, actuator: Actuator
) -> None:
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["far"]}
    terms = [{"matchExpressions": [term]}]
    api.change(
        "PersistentVolume",
        "w",
        {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}},
    )
    actuator.carry_out(bind("p", "c"))
    await until(lambda: api.annotations("c"))
    api.complete("c", "w")
    await until(lambda: "out of reach of node n" in api.told.get("p", ""))
    assert not api.bound
