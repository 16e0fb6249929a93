"""The loads of GPUs and pods, by the looks and what is charged to slices."""

from types import SimpleNamespace
from typing import Any

import pytest

from alnair.node.gpu_looks import GpuLook
from alnair.node.load import GpuHolder, GpusLoad
from alnair.node.nvml import Usage
from alnair.node.vgpu.containers.container_slices import (
    ContainerMatch,
    ContainerSlices,
    OwningPod,
    Share,
)
from alnair.sharing.load import PodLoad

A, B = (f"GPU-00000000-0000-0000-0000-00000000000{n}" for n in (1, 2))
SHARER, OWNER = OwningPod("ns", "sharer", "uid-1"), OwningPod("ns", "owner", "uid-2")


def look(now: float, **utils: float | None) -> GpuLook:
    """With the use of GPUs a and b, where they answer."""
    usages = {{"a": A, "b": B}[name]: Usage(util, 7 << 20) for name, util in utils.items()}
    return GpuLook(now, 1, usages, {})


def container(pod: OwningPod, *shares: Share) -> Any:
    return SimpleNamespace(
        assignment=ContainerSlices("c", ContainerMatch(pod=pod.uid), shares, pod),
        totals=SimpleNamespace(devices=[{"charged_ns": 0} for _ in shares]),
    )


def test_gpus_have_means_and_those_that_fall_silent_have_none() -> None:
    load = GpusLoad({})
    load.take(look(0.0, a=20, b=0))
    load.take(look(1.0, a=40, b=0))
    found = load.gpus()
    assert (found[A].util, found[A].memory_bytes, found[A].window_s) == (30.0, 7 << 20, 1.0)
    load.take(look(7.0, a=40))
    assert list(load.gpus()) == [A]


def test_where_use_is_not_measured_there_is_no_load() -> None:
    load = GpusLoad({}, lambda: [GpuHolder(OWNER, (A,))])
    load.take(look(0.0, a=None))
    assert (load.gpus(), load.pods()) == ({}, {OWNER: None})


def test_a_slices_use_is_what_was_charged_to_it() -> None:
    one = container(OwningPod("ns", "sharer", "uid-1", "main"), Share(A, compute_percent=50))
    load = GpusLoad({"c": one})
    load.take(look(0.0, a=100))
    assert load.pods() == {SHARER: None}, "nothing is known of it yet"
    for second in range(1, 5):
        one.totals.devices[0]["charged_ns"] += 250_000_000
        load.take(look(float(second), a=100))
    assert load.pods() == {SHARER: PodLoad(25.0)}


def test_a_slice_that_nothing_is_charged_to_counts_with_its_whole_gpu() -> None:
    load = GpusLoad({"c": container(SHARER, Share(A, memory_mib=1024))})
    load.take(look(0.0, a=80))
    assert load.pods() == {SHARER: PodLoad(80.0)}


def test_a_pod_is_idle_once_none_of_its_containers_uses_a_gpu() -> None:
    one = container(OWNER, Share(B, compute_percent=50))
    load = GpusLoad({"c": one}, lambda: [GpuHolder(OWNER, (A,))])
    for second in range(80):
        load.take(look(float(second), a=60 if second < 10 else 0, b=99))
    assert load.pods() == {OWNER: PodLoad(0.0, 69.0)}
    one.totals.devices[0]["charged_ns"] += 500_000_000
    load.take(look(80.0, a=0, b=99))
    busy = load.pods()[OWNER]
    assert busy is not None
    assert busy.idle_for is None


def test_a_gpus_past_is_not_its_next_holders() -> None:
    holders = [GpuHolder(OWNER, (A,))]
    load = GpusLoad({}, lambda: holders)
    for second in range(20):
        load.take(look(float(second), a=100))
    holders[:] = [GpuHolder(SHARER, (A,))]
    for second in range(20, 30):
        load.take(look(float(second), a=0))
    assert load.pods() == {SHARER: PodLoad(0.0)}
    assert load.gpus()[A].util == pytest.approx(100 * 20 / 30)


def test_containers_of_no_pod_have_no_pods_load() -> None:
    load = GpusLoad({"c": container(OwningPod(), Share(A, compute_percent=5))})
    load.take(look(0.0, a=1))
    load.take(look(1.0, a=1))
    assert load.pods() == {}
