"""Pods with volumes: where they can go, what they share, what is promised to them."""

import msgspec
import pytest

from alnair.model.action import Bind
from alnair.model.volumes import (
    AWS_EBS,
    EPHEMERAL,
    Attachment,
    ClaimBinding,
    Disk,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageCapacity,
    StorageClass,
    StorageDriver,
    StorageNode,
)
from alnair.model.workload import LabelSelector, PodVolume, Requirement, Term
from alnair.scheduler.queue.unit import ClassKey, Unit
from alnair.scheduler.state.objects import storage_objects
from kit import make
from kit.world import World

WAITS = "WaitForFirstConsumer"
LOCAL = StorageClass("local", "kubernetes.io/no-provisioner", WAITS)
MADE = StorageClass("made", "csi.example.com", WAITS)


def world(*nodes: str, zone: dict[str, str] | None = None) -> World:
    """Nodes of these names, and the two classes that wait for a node."""
    zones = zone or {}
    found = World(
        *(make.node(n, labels={"topology.kubernetes.io/zone": zones.get(n, "z")}) for n in nodes)
    )
    found.set_object(storage_objects.CLASSES, "local", LOCAL)
    found.set_object(storage_objects.CLASSES, "made", MADE)
    return found


def store(here: World, *objects: PersistentVolumeClaim | PersistentVolume) -> None:
    """Create claims and persistent volumes."""
    for value in objects:
        if isinstance(value, PersistentVolumeClaim):
            here.set_object(storage_objects.CLAIMS, value.name, value, value.namespace)
        else:
            here.set_object(storage_objects.VOLUMES, value.name, value)


def user(name: str, *names: str) -> make.Pod:
    """A pod with these claims."""
    return make.pod(name, make.spec(claims=names))


def binds(here: World) -> dict[str, tuple[str, tuple[ClaimBinding, ...]]]:
    """Where pods went, and what is written for their claims."""
    return {a.pod.name: (a.node, a.claims) for a in here.log if isinstance(a, Bind)}


def refusals(here: World) -> str:
    """What was said about pods that wait."""
    return "\n".join(r.message for r in here.reports if r.kind == "FailedScheduling")


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (None, 'persistentvolumeclaim "data" not found'),
        (
            make.claim("data", storage_class="slow"),
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            make.claim("data", volume="gone"),
            "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        ),
        (
            msgspec.structs.replace(make.claim("data", volume="gone"), lost=True),
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "gone"',
        ),
        (
            msgspec.structs.replace(make.claim("data"), deleting=True),
            'persistentvolumeclaim "data" is being deleted',
        ),
        (make.claim("data"), "node(s) didn't find available persistent volumes to bind"),
    ],
)
def test_a_pod_waits_for_its_claim_and_says_why(
    claim: PersistentVolumeClaim | None, reason: str
) -> None:
    here = world("a")
    if claim:
        store(here, claim)
    here.create(user("p", "data"))
    here.settle()
    assert here.where("p") == [""]
    assert reason in refusals(here)


def test_a_claim_that_appears_wakes_its_pod() -> None:
    here = world("a")
    here.create(user("p", "data"))
    here.settle()
    store(here, make.local_volume("v"), make.claim("data", volume="v"))
    here.settle()
    assert here.where("p") == ["a"]


def test_a_claim_of_the_same_name_in_another_namespace_is_another_claim() -> None:
    here = world("a")
    store(here, make.local_volume("v"), make.claim("data", volume="v"))
    here.create(make.pod("p", make.spec(claims=["data"]), namespace="elsewhere"))
    here.settle()
    assert here.pod("p", "elsewhere").node == ""


def test_a_pod_goes_where_its_bound_volume_is() -> None:
    here = world("a", "b", "c")
    store(here, make.local_volume("v", "b"), make.claim("data", volume="v"))
    here.create(user("p", "data"))
    here.settle()
    assert here.where("p") == ["b"]


def test_the_smallest_volume_that_is_large_enough_is_taken() -> None:
    here = world("a")
    sizes = {"huge": 9, "fit": 3, "small": 1}
    store(here, *(make.local_volume(n, "a", size * make.GIB) for n, size in sizes.items()))
    store(here, make.claim("data", 2 * make.GIB))
    here.create(user("p", "data"))
    here.step()
    assert binds(here)["p"] == ("a", (ClaimBinding("default", "data", "uid-data", "fit"),))


@pytest.mark.parametrize(
    "change",
    [
        {"storage_class": "other"},
        {"block": True},
        {"modes": ("ReadOnlyMany",)},
        {"available": False},
        {"deleting": True},
        {"attributes_class": "gold"},
        {"claim": ("default", "another")},
        {"claim": ("default", "data"), "claim_uid": "of-one-before"},
        {"claim": ("default", "data"), "storage_class": "other"},
        {"size": make.GIB - 1},
        {"nodes": ()},
    ],
)
def test_a_volume_that_does_not_match_is_not_taken(change: dict[str, object]) -> None:
    here = world("a")
    store(here, msgspec.structs.replace(make.local_volume("v", "a"), **change))
    store(here, make.claim("data"))
    here.create(user("p", "data"))
    here.step()
    assert not binds(here)


def test_a_selector_of_the_claim_chooses_among_volumes() -> None:
    here = world("a", "b")
    gold = Requirement("tier", "In", ("gold",))
    store(
        here,
        make.local_volume("v", "a"),
        msgspec.structs.replace(make.local_volume("w", "b", 9**12), labels=(("tier", "gold"),)),
        msgspec.structs.replace(make.claim("data"), selector=LabelSelector((gold,))),
    )
    here.create(user("p", "data"))
    here.step()
    assert binds(here)["p"][0] == "b"


def test_two_claims_of_a_pod_get_two_volumes_of_one_node() -> None:
    here = world("a", "b")
    store(here, make.local_volume("v", "a", 5), make.local_volume("w", "b", 5))
    store(here, make.local_volume("x", "b", 6), make.claim("large", 5), make.claim("small", 4))
    here.create(user("p", "large", "small"))
    here.step()
    node, written = binds(here)["p"]
    assert node == "b"
    assert {c.name: c.volume for c in written} == {"small": "w", "large": "x"}


def test_two_pods_do_not_get_the_same_volume() -> None:
    here = world("a", "b")
    store(here, make.local_volume("v", "a"), make.local_volume("w", "b"))
    store(here, *(make.claim(n) for n in "kl"))
    here.create(user("p", "k"), user("q", "l"), user("r", "m"))
    here.step()
    assert {node for node, _ in binds(here).values()} == {"a", "b"}


def test_a_volume_is_free_again_when_the_binding_failed() -> None:
    here = world("a")
    store(here, make.local_volume("v", "a"), make.claim("k"), make.claim("l"))
    here.fault = lambda action: "" if action.pod.name == "q" else "no"  # type: ignore[union-attr]
    here.create(user("p", "k"))
    here.step()
    here.create(user("q", "l"))
    here.step()
    assert set(binds(here)) == {"p"}
    here.delete("p")
    here.settle()
    assert binds(here)["q"][0] == "a"


def test_pods_that_share_an_unbound_claim_go_where_its_volume_will_be() -> None:
    here = world("a", "b")
    store(
        here,
        make.local_volume("v", "b"),
        make.claim("data"),
        make.claim("made", storage_class="made"),
    )
    here.create(*(user(f"p{i}", "data") for i in range(3)))
    here.create(*(user(f"q{i}", "made") for i in range(3)))
    here.step()
    found = binds(here)
    assert {found[f"p{i}"][0] for i in range(3)} == {"b"}
    assert len({found[f"q{i}"][0] for i in range(3)}) == 1


def test_a_volume_that_was_set_aside_for_the_claim_is_the_only_one_that_will_do() -> None:
    here = world("a", "b")
    aside = make.local_volume("w", "b", 9 * make.GIB)
    store(here, make.local_volume("v", "a"), make.claim("data"))
    store(here, msgspec.structs.replace(aside, claim=("default", "data"), available=False))
    here.create(user("p", "data"))
    here.step()
    assert binds(here)["p"] == ("b", (ClaimBinding("default", "data", "uid-data", "w"),))


def test_a_volume_is_made_where_none_is_and_the_class_allows_it() -> None:
    here = world("a", "b", zone={"a": "x", "b": "y"})
    y = Term((Requirement("topology.kubernetes.io/zone", "In", ("y",)),))
    here.set_object(storage_objects.CLASSES, "made", msgspec.structs.replace(MADE, topologies=(y,)))
    store(here, make.claim("data", storage_class="made"))
    here.create(user("p", "data"))
    here.step()
    assert binds(here)["p"] == ("b", (ClaimBinding("default", "data", "uid-data"),))


def test_a_claim_whose_node_was_selected_before_stays_there() -> None:
    here = world("a", "b", "c")
    store(here, make.claim("data", storage_class="made", selected_node="c"))
    here.create(user("p", "data"))
    here.step()
    assert binds(here)["p"][0] == "c"


@pytest.mark.parametrize(
    ("capacity", "fits"),
    [
        (None, False),
        (StorageCapacity("made", make.GIB, LabelSelector()), True),
        (StorageCapacity("made", make.GIB - 1, LabelSelector()), False),
        (StorageCapacity("other", make.GIB, LabelSelector()), False),
        (StorageCapacity("made", make.GIB, None), False),
        (
            StorageCapacity(
                "made",
                make.GIB,
                LabelSelector((Requirement("topology.kubernetes.io/zone", "In", ("far",)),)),
            ),
            False,
        ),
    ],
)
def test_a_driver_that_publishes_capacity_needs_enough_of_it(
    capacity: StorageCapacity | None, fits: bool
) -> None:
    here = world("a")
    here.set_object(
        storage_objects.DRIVERS,
        "csi.example.com",
        StorageDriver("csi.example.com", checks_capacity=True),
    )
    if capacity:
        here.set_object(storage_objects.CAPACITIES, "c", capacity, "default")
    store(here, make.claim("data", storage_class="made"))
    here.create(user("p", "data"))
    here.step()
    assert bool(binds(here)) == fits
    if not fits:
        assert "node(s) did not have enough free storage" in refusals(here)


def test_a_read_write_once_pod_claim_is_for_one_pod_at_a_time() -> None:
    here = world("a", "b")
    store(here, make.local_volume("v"), make.claim("data", volume="v", modes=["ReadWriteOncePod"]))
    here.create(user("p", "data"), user("q", "data"))
    here.settle()
    assert sorted(map(bool, here.where("p", "q"))) == [False, True]
    assert "ReadWriteOncePod access mode already in-use" in refusals(here)
    first, second = ("p", "q") if here.where("p") != [""] else ("q", "p")
    here.delete(first)
    here.settle()
    assert here.where(second) != [""]


def test_an_ephemeral_claim_must_be_the_pods_own() -> None:
    here = world("a")
    store(here, make.local_volume("v"), make.claim("p-scratch", volume="v", owner="uid-default-p"))
    volume = PodVolume(EPHEMERAL, "p-scratch", pod="p", uid="uid-default-p")
    thief = msgspec.structs.replace(volume, pod="q", uid="uid-default-q")
    here.create(make.pod("p", make.spec(volumes=[volume])))
    here.create(make.pod("q", make.spec(volumes=[thief])))
    here.settle()
    assert here.where("p", "q") == ["a", ""]


def test_volumes_of_a_driver_are_counted_with_those_that_are_still_attached() -> None:
    here = world("a", "b")
    for name in "ab":
        here.set_object(
            storage_objects.CSI_NODES, name, StorageNode(name, (("csi.example.com", 2),))
        )
    disks = {n: Disk("csi.example.com", n) for n in "vwxyz"}
    for name, disk in disks.items():
        store(here, msgspec.structs.replace(make.local_volume(name), disk=disk))
        store(here, make.claim(name, volume=name))
    here.set_object(storage_objects.ATTACHMENTS, "old", Attachment("csi.example.com", "a", "z"))
    here.create(*(user(f"p-{n}", n) for n in "vwxy"))
    here.settle()
    where = here.where(*(f"p-{n}" for n in "vwxy"))
    assert sorted(where) == ["", "a", "b", "b"]
    assert "exceed max volume count" in refusals(here)
    here.drop_object(storage_objects.ATTACHMENTS, "old")
    here.settle()
    assert sorted(here.where(*(f"p-{n}" for n in "vwxy"))) == ["a", "a", "b", "b"]


def test_a_disk_that_one_node_mounts_goes_to_another_node_or_is_read_only() -> None:
    here = world("a", "b")
    disk = PodVolume(AWS_EBS, "vol-1")
    here.create(*(make.pod(f"p{i}", make.spec(volumes=[disk])) for i in range(3)))
    here.settle()
    assert sorted(here.where("p0", "p1", "p2")) == ["", "a", "b"]


def test_promises_are_taken_back_with_the_bookings() -> None:
    here = world("a")
    store(here, make.local_volume("v", "a"), make.claim("data"))
    here.create(user("p", "data"))
    here.step()
    index = here.engine.view.cluster.volumes
    assert index.promised_to("v") == ("default", "data")
    here.delete("p")
    here.step()
    assert index.promised_to("v") is None
    assert not list(index.on_row(0))


def test_many_pods_that_wait_for_storage_hold_up_nobody() -> None:
    here = world(*(f"n{i}" for i in range(4)))
    store(here, *(make.claim(f"c{i}", storage_class="made") for i in range(100)))
    here.create(*(user(f"p{i}", f"c{i}") for i in range(100)))
    here.step(limit=200)
    assert len(binds(here)) == 100
    assert here.engine.in_flight == 0


def test_a_refused_binding_is_told_and_tried_again() -> None:
    here = world("a", "b")
    store(here, make.local_volume("v", "a"), make.local_volume("w", "b"), make.claim("data"))
    here.create(user("p", "data"))
    here.step()
    (written,) = binds(here)["p"][1]
    rival = msgspec.structs.replace(
        here.objects[storage_objects.VOLUMES, "", written.volume], claim=("default", "rival")
    )
    store(here, rival)  # before ours arrives
    here.settle()
    assert "belongs to another claim" in refusals(here)
    assert here.where("p") == ["b" if written.volume == "v" else "a"]


@pytest.mark.parametrize("storage_class", ["local", "made"])
def test_what_was_written_before_a_crash_ties_the_pod_to_its_storage(storage_class: str) -> None:
    here = world("a", "b", "c")
    store(here, *(make.local_volume(f"v{n}", n) for n in "abc"))
    store(here, make.claim("data", storage_class=storage_class))
    here.create(user("p", "data"))
    here.step()
    node, (written,) = binds(here)["p"]
    if written.volume:
        volume = here.objects[storage_objects.VOLUMES, "", written.volume]
        aside = msgspec.structs.replace(
            volume, claim=("default", "data"), claim_uid=written.uid, available=False
        )
        store(here, aside)
    else:
        store(here, make.claim("data", storage_class=storage_class, selected_node=node))
    here.seed += 1  # which would choose another node
    here.crash()
    here.settle()
    assert here.where("p") == [node]


def test_a_gang_takes_one_volume_each_or_nothing() -> None:
    here = world("a", "b")
    store(here, make.local_volume("v", "a"), make.local_volume("w", "b"))
    store(here, *(make.claim(f"c{i}") for i in range(3)))
    here.declare(make.gang("g", 3))
    pods = [make.pod(f"g-{i}", make.spec(claims=[f"c{i}"]), group="g") for i in range(3)]
    here.create(*pods)
    here.settle()
    assert here.placed() == set()
    assert here.engine.view.cluster.volumes.promised_to("v") is None
    store(here, make.local_volume("x", "b"))
    here.settle()
    assert here.placed() == {"g-0", "g-1", "g-2"}
    assert {a.together for a in here.log if isinstance(a, Bind)} == {"default/g"}


def test_news_of_storage_is_looked_at_only_for_pods_that_it_may_help(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = world("a")
    here.create(*(make.pod(f"big-{i}", make.spec(cpu=10_000 + i)) for i in range(20)))
    here.create(user("p", "data"), user("q", "other"))
    here.settle()
    looked: list[str] = []
    may_fit = here.engine._quick_check.may_fit

    def look(key: ClassKey, unit: Unit) -> bool:
        looked.extend(v.name for v in key[1].volumes)
        if not key[1].volumes:
            looked.append("none")
        return may_fit(key, unit)

    monkeypatch.setattr(here.engine._quick_check, "may_fit", look)
    store(here, make.local_volume("v"), make.claim("data", volume="v"))
    here.settle()
    assert here.where("p", "q") == ["a", ""]
    assert looked.count("none") <= 1
    assert looked.count("other") <= 1  # a volume may help anyone with a claim


@pytest.mark.parametrize("kind", ["claim", "disk", "limit"])
def test_a_more_important_pod_may_take_the_volume_of_another(kind: str) -> None:
    here = world("a")
    specs = [make.spec(claims=["data"])] * 2
    modes = ["ReadWriteOncePod"]
    store(here, make.local_volume("v"), make.claim("data", volume="v", modes=modes))
    if kind == "disk":
        specs = [make.spec(volumes=[PodVolume(AWS_EBS, "vol-1")])] * 2
    if kind == "limit":
        here.set_object(storage_objects.CSI_NODES, "a", StorageNode("a", (("csi.example.com", 1),)))
        for name in "xy":
            disk = Disk("csi.example.com", name)
            store(here, msgspec.structs.replace(make.local_volume(name), disk=disk))
            store(here, make.claim(name, volume=name))
        specs = [make.spec(claims=[name]) for name in "xy"]
    here.create(make.pod("low", specs[0], priority=1))
    here.settle()
    here.create(make.pod("high", specs[1], priority=2))
    here.settle()
    assert {pod.name: pod.node for pod in here.pods.values()} == {"high": "a"}
