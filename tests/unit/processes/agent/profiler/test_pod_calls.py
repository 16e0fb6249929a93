"""Which CUDA calls a pod makes, from look to look, or why nobody knows."""

import msgspec
import pytest

from alnair.model import names
from alnair.model.usage import UsedGpu
from alnair.node.vgpu.containers.container_slices import (
    ContainerMatch,
    ContainerSlices,
    OwningPod,
    Share,
)
from alnair.node.vgpu.pages import abi
from alnair.node.vgpu.pages.totals import Totals
from alnair.processes.agent.profiler.pod_calls import PodCalls
from alnair.profiler.pods.accounts import Account

GPU = "GPU-00000000-0000-0000-0000-000000000001"


class Container(msgspec.Struct):
    """One with counters."""

    assignment: ContainerSlices
    totals: Totals

    def called(self, **counts: int) -> None:
        for name, count in counts.items():
            self.totals.calls[abi.Call[name.upper()]][0] += count


def container(uid: str, name: str = "main", memory_mib: int = 4096) -> Container:
    pod = OwningPod("team", "train", uid, name)
    shares = (Share(GPU, memory_mib),)
    match = ContainerMatch(pod=uid)
    return Container(ContainerSlices(f"{uid}-{name}", match, shares, pod), Totals(1))


def account(uid: str = "u1", gpu: str = GPU) -> Account:
    gpus = {gpu: UsedGpu(gpu, "NVIDIA H100", 81_559, whole=True)}
    return Account(uid, "team", "train", 0, 0, 0.0, 0.0, gpus=gpus)


class Scene:
    """Containers and a clock."""

    def __init__(self, *containers: Container) -> None:
        self.containers = list(containers)
        self.now = 100.0
        self.calls = PodCalls(lambda: self.containers, lambda: self.now)


def test_calls_of_all_its_containers_since_the_last_look() -> None:
    one, two, other = container("u1"), container("u1", "side"), container("u2")
    scene = Scene(one, two, other)
    one.called(launch=500)
    assert scene.calls.look(account()) == (None, None)  # since when, nobody knows
    one.called(launch=800, h2d=100)
    two.called(graph=100)
    other.called(sync=10_000)
    scene.now += 10
    found, kind = scene.calls.look(account())
    assert found is not None
    assert (found.per_s, found.source) == (100.0, "the slice's library")
    assert found.shares == {"graph": 0.1, "h2d": 0.1, "launch": 0.8}
    assert kind == "training"


@pytest.mark.parametrize(
    ("gpu", "why"),
    [(GPU, f"annotate the pod with {names.COUNT_CALLS}"), ("MIG-" + GPU[4:], "MIG devices")],
)
def test_without_counters_it_says_why(gpu: str, why: str) -> None:
    found, kind = Scene().calls.look(account(gpu=gpu))
    assert found is not None
    assert why in found.unknown
    assert (found.shares, kind) == ({}, None)


def test_an_older_library_is_named_and_its_classes_are_not_told_as_none() -> None:
    one = container("u1", memory_mib=0)
    one.totals.uncounted = frozenset({abi.Call.GRAPH, abi.Call.EVENT, abi.Call.MODULE})
    scene = Scene(one)
    scene.calls.look(account())
    one.called(launch=10, sync=10)
    scene.now += 1
    found, _ = scene.calls.look(account())
    assert found is not None
    assert found.source.startswith("the library, as the pod asks; by an older library")
    assert found.shares == {"launch": 0.5, "sync": 0.5}


def test_pods_that_are_gone_are_forgotten() -> None:
    one = container("u1")
    scene = Scene(one)
    scene.calls.look(account())
    scene.calls.keep([])
    one.called(launch=10)
    scene.now += 1
    assert scene.calls.look(account()) == (None, None)
