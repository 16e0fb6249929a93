"""The books of pods, from their first container to their last."""

import random
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from alnair.model import usage
from alnair.model.usage import PodUsage, UsedGpu
from alnair.profiler.pods.accounts import PodAccounts, SavedAccounts, Seen
from alnair.profiler.pods.gpu_use import GpusUsed, GpuUse, Holder
from alnair.profiler.samples import CgroupSample, ContainerKey, NetworkSample

MIB = 1 << 20
NOON = 1_795_348_800.0
GPU = UsedGpu("GPU-1", "H100", 81920, whole=True)


class Names(msgspec.Struct, frozen=True):
    """What the API server says of a pod."""

    uid: str
    containers: dict[str, str]
    is_ended: bool = False
    namespace: str = "ns"

    @property
    def name(self) -> str:
        return f"pod-{self.uid}"


class World:
    """A node: containers use so many cores and MiB a second, until they are changed."""

    def __init__(self) -> None:
        self.books = PodAccounts("n1")
        self.second = 0
        self.names: dict[str, Names] = {}
        self.cores: dict[ContainerKey, float] = {}
        self.cpu: dict[ContainerKey, float] = {}
        self.sent = 0
        self.present: set[str] = set()
        self.gpus: GpusUsed | None = None
        self.given: dict[str, list[UsedGpu]] = {}

    def pod(self, uid: str, **containers: float) -> None:
        """A pod with containers that use so many cores each."""
        ids = {f"id-{uid}-{name}": name for name in containers}
        self.names[uid] = Names(uid, ids)
        self.present.add(uid)
        for name, cores in containers.items():
            self.cores[ContainerKey(uid, f"id-{uid}-{name}")] = cores
        self.cores[ContainerKey(uid, "sandbox")] = 0.0

    def stop(self, uid: str, *containers: str, pod: bool = False) -> None:
        """End containers; and the pod, with its sandbox."""
        for key in [k for k in self.cores if k.pod == uid]:
            if pod or key.container.removeprefix(f"id-{uid}-") in containers:
                del self.cores[key]
        if pod:
            self.present.discard(uid)

    def run(self, seconds: int) -> list[PodUsage]:
        ended: list[PodUsage] = []
        for _ in range(seconds):
            self.second += 1
            for key, cores in self.cores.items():
                self.cpu[key] = self.cpu.get(key, 0.0) + cores
            groups = {
                key: CgroupSample(
                    float(self.second), cpu_ns=int(self.cpu[key] * 1e9), memory_bytes=10 * MIB
                )
                for key in self.cores
            }
            ended += self.books.tick(
                Seen(
                    float(self.second),
                    NOON + self.second,
                    self.names,
                    groups,
                    {uid: NetworkSample(self.second, 0, MIB * self.second) for uid in self.present},
                    frozenset(self.present),
                    self.gpus,
                    self.given,
                )
            )
        return ended

    def uses(self, *uses: tuple[str, str, str, GpuUse]) -> None:
        self.gpus = GpusUsed({(Holder(uid, name), gpu): use for uid, name, gpu, use in uses})


@pytest.fixture
def world() -> World:
    return World()


def cores(found: dict[str, usage.Digest]) -> tuple[float, float]:
    digest = found[usage.CPU_CORES]
    return digest.mean, digest.seconds


def test_a_pods_life_is_told_when_it_ends(world: World) -> None:
    world.pod("a", main=1.5, beside=0.5)
    world.run(11)
    (running,) = world.books.running()
    assert running.ended is None
    assert running.metrics[usage.CPU_CORES].last == 2.0
    world.stop("a", pod=True)
    (ended,) = world.run(1)
    assert (ended.v, ended.node, ended.namespace, ended.pod, ended.uid) == (
        1,
        "n1",
        "ns",
        "pod-a",
        "a",
    )
    assert (ended.started, ended.ended) == (NOON + 1, NOON + 11)
    assert cores(ended.metrics) == (2.0, 10.0)
    assert cores(ended.containers["main"]) == (1.5, 10.0)
    assert ended.metrics[usage.MEMORY_MIB].max == 20.0, "without the sandbox"
    assert ended.metrics[usage.NET_TX_MIB_S].mean == 1.0
    assert ended.metrics[usage.CPU_CORES].last is None
    assert world.run(3) == []
    assert world.books.running() == []


def test_a_container_that_is_restarted_goes_on_and_the_pod_waits_for_it(world: World) -> None:
    world.pod("a", main=1.0)
    world.run(5)
    world.stop("a", "main")
    assert world.run(60) == [], "its group is there still"
    assert world.books.running()[0].metrics[usage.CPU_CORES].last is None
    again = ContainerKey("a", "id-2")
    world.names["a"] = Names("a", {"id-a-main": "main", "id-2": "main"})
    world.cores[again] = 3.0
    world.run(5)
    assert cores(world.books.running()[0].containers["main"]) == (2.0, 8.0)
    world.names["a"] = msgspec.structs.replace(world.names["a"], is_ended=True)
    del world.cores[again]
    assert len(world.run(1)) == 1, "it will not run again"


def test_pods_of_other_clusters_and_those_without_names_yet_are_none_of_ours(world: World) -> None:
    world.pod("foreign", main=1.0)
    del world.names["foreign"]
    world.pod("late", main=1.0)
    names = world.names.pop("late")
    world.run(3)
    assert world.books.running() == []
    world.names["late"] = names
    world.run(2)
    assert [one.uid for one in world.books.running()] == ["late"]


def test_a_pod_from_a_file_has_another_uid_in_its_groups(world: World) -> None:
    world.pod("hash", main=1.0)
    world.names["hash"] = msgspec.structs.replace(world.names["hash"], uid="uid-1")
    world.run(2)
    after_a_restart(world)
    world.stop("hash", pod=True)
    assert [one.uid for one in world.run(1)] == ["uid-1"]


def test_what_a_container_used_before_its_name_was_known_is_in_its_first_figure(
    world: World,
) -> None:
    world.pod("a", main=2.0)
    known = world.names["a"]
    world.names["a"] = msgspec.structs.replace(known, containers={})
    world.run(3)
    world.cores[ContainerKey("a", "id-a-main")] = 0.0
    world.names["a"] = known
    world.run(1)
    assert cores(world.books.running()[0].containers["main"]) == (pytest.approx(4 / 3), 1.0)


def test_gpus_are_means_over_gpus_and_energy_adds_up(world: World) -> None:
    world.pod("a", main=1.0, beside=0.0)
    world.given = {"a": [GPU]}
    world.uses(
        ("a", "main", "GPU-1", GpuUse(40.0, None, 100 * MIB, 70.0, 70.0)),
        ("a", "beside", "GPU-1", GpuUse(20.0, None, 50 * MIB, 30.0, 30.0)),
        ("a", "main", "GPU-2", GpuUse(20.0, None, 0, 0.0, 0.0)),
        ("gone", "main", "GPU-2", GpuUse(20.0)),
    )
    world.run(4)
    (found,) = world.books.running()
    assert found.metrics[usage.GPU_UTIL].mean == 40.0, "60 of one, 20 of the other"
    assert found.containers["main"][usage.GPU_UTIL].mean == 30.0
    assert found.metrics[usage.GPU_MEMORY_MIB].max == 150.0
    assert found.energy_j == 400.0
    assert found.gpus == [GPU]
    world.gpus = None
    world.run(1)
    assert world.books.running()[0].metrics[usage.GPU_UTIL].last is None, "not measured is not 0"


def test_a_gap_in_time_is_not_measured_time(world: World) -> None:
    world.pod("a", main=1.0)
    world.run(3)
    world.second += 600
    world.run(1)
    assert world.books.running()[0].metrics[usage.MEMORY_MIB].seconds == 4.0


def test_the_last_ten_minutes_can_be_read(world: World) -> None:
    world.pod("a", main=1.0)
    world.run(3)
    at, found = world.books.series("a")
    assert at == [NOON + 1, NOON + 2, NOON + 3]
    assert found[usage.CPU_CORES] == [None, 1.0, 1.0]
    assert usage.GPU_UTIL not in found
    assert world.books.newest("a", usage.CPU_CORES, 15) == [1.0, 1.0]


def saved(books: PodAccounts) -> SavedAccounts:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(books.saved()), type=SavedAccounts)


def after_a_restart(world: World, without: Iterable[str] = ()) -> None:
    document = saved(world.books)
    world.books = PodAccounts("n1")
    world.books.restore(document, without)


def test_figures_go_on_after_a_restart(world: World) -> None:
    world.pod("a", main=1.0)
    world.pod("b", main=2.0, beside=1.0)
    world.given = {"a": [GPU]}
    world.uses(("a", "main", "GPU-1", GpuUse(40.0, None, 0, 70.0, 70.0)))
    world.run(6)
    world.stop("b", pod=True)
    after_a_restart(world)
    (ended,) = world.run(1)
    assert (ended.uid, ended.ended) == ("b", NOON + 6)
    assert cores(ended.metrics) == (3.0, 5.0)
    world.run(4)
    (running,) = world.books.running()
    assert (running.started, running.energy_j, running.gpus) == (NOON + 1, 770.0, [GPU])
    assert cores(running.metrics) == (1.0, 9.0), "of the first sample there is none before"


def test_a_pod_whose_end_was_written_is_not_told_again(world: World) -> None:
    world.pod("a", main=1.0)
    world.pod("b", main=1.0)
    world.run(3)
    world.stop("a", pod=True)
    world.stop("b", pod=True)
    after_a_restart(world, without=["a"])
    assert [one.uid for one in world.run(1)] == ["b"]


@pytest.mark.parametrize(
    ("change", "message"), [({"v": 2}, "version 2"), ({"pods": []}, "other rows")]
)
def test_what_was_saved_by_others_is_refused(
    world: World, change: dict[str, Any], message: str
) -> None:
    world.pod("a", main=1.0)
    world.run(1)
    document = msgspec.structs.replace(world.books.saved(), **change)
    with pytest.raises(ValueError, match=message):
        PodAccounts("n1").restore(document)


def test_of_thousands_of_pods_none_is_lost_told_twice_or_mistaken(world: World) -> None:
    chance = random.Random(7)
    wanted: dict[str, float] = {}
    ends: dict[str, int] = {}
    ended: list[PodUsage] = []
    while len(ended) < 10_000:
        while len(ends) < 200 and len(wanted) < 10_000:
            uid = f"p{len(wanted)}"
            wanted[uid] = chance.uniform(0.1, 8.0)
            world.pod(uid, main=wanted[uid])
            ends[uid] = world.second + chance.randint(1, 9)
        for uid in [uid for uid, at in ends.items() if at <= world.second]:
            world.stop(uid, pod=True)
            # The API server tells of it sooner or later than the kernel.
            if chance.random() < 0.5:
                del world.names[uid]
            del ends[uid]
        ended += world.run(1)
        if chance.random() < 0.05:
            after_a_restart(world)
    assert world.books.running() == []
    assert sorted(one.uid for one in ended) == sorted(wanted)
    for one in ended:
        assert one.pod == f"pod-{one.uid}"
        assert one.metrics[usage.MEMORY_MIB].max == 10.0
        if digest := one.metrics.get(usage.CPU_CORES):
            assert digest.mean == pytest.approx(wanted[one.uid], rel=1e-3)
            assert digest.max == pytest.approx(wanted[one.uid], rel=1e-3)


def test_a_pod_from_a_file_whose_copy_was_made_anew_is_another_pod_and_nothing_is_lost() -> None:
    world = World()
    world.pod("hash", main=1.0)
    world.names["hash"] = msgspec.structs.replace(world.names["hash"], uid="first")
    assert world.run(5) == []
    world.names["hash"] = msgspec.structs.replace(world.names["hash"], uid="second")
    (ended,) = world.run(5)
    assert (ended.uid, ended.pod) == ("first", "pod-first")
    (running,) = world.books.running()
    assert running.uid == "second"
    cores = [one.metrics[usage.CPU_CORES] for one in (ended, running)]
    assert sum(one.seconds for one in cores) == 9, "each second is one of them's"
    assert [one.mean for one in cores] == [1.0, 1.0]
