"""What nodes have in all, and when plugins get to see it."""

import msgspec
import pytest

from alnair.model.nodes import Node, Taint
from alnair.scheduler.plugins.opportunity_cost.supply import Beside, Supply, SupplyState
from kit import make
from kit.make import GIB


def node(name: str, gpus: int = 4, cpu: int = 32000, **rest: object) -> Node:
    return make.node(name, cpu=cpu, memory=64 * GIB, gpus=gpus, **rest)  # type: ignore[arg-type]


def supply(*nodes: Node) -> Supply:
    found = Supply()
    for row, each in enumerate(nodes):
        found.describe(row, each, each.gpus)
    found.review(always=True)
    return found


def test_nodes_with_as_much_per_gpu_are_one_group_and_the_richest_comes_first() -> None:
    found = supply(node("a"), node("b", gpus=8, cpu=64000), node("rich", cpu=96000)).known
    assert found.cpu == Beside(((4, 96000), (12, 96000)))
    assert sum(gpus for gpus, _ in found.memory.groups) == 16


def test_nodes_without_gpus_count_apart_unless_a_taint_or_a_cordon_keeps_pods_off() -> None:
    taints = (Taint("gpu", "NoSchedule"),)
    found = supply(
        node("gpus", taints=taints),
        node("cpus", gpus=0, cpu=48000),
        node("control-plane", gpus=0, taints=taints),
        msgspec.structs.replace(node("cordoned"), unschedulable=True),
    ).known
    assert found.cpu == Beside(((4, 32000),), 48000)


def test_small_changes_wait_for_the_mix_and_clear_ones_do_not() -> None:
    followed = supply(*(node(f"n{i}") for i in range(100)))
    before = followed.version
    followed.describe(100, extra := node("extra"), extra.gpus)
    assert not followed.review(always=False)
    assert followed.review(always=True)
    assert not followed.review(always=True), "nothing is new"
    for row in range(101, 110):
        followed.describe(row, extra, extra.gpus)
    assert followed.review(always=False)
    assert followed.version == before + 2


def test_what_leaves_or_changes_is_not_counted_twice() -> None:
    followed = supply(node("a"), node("b"))
    followed.describe(0, None, ())
    followed.describe(1, changed := node("b", cpu=64000), changed.gpus)
    followed.review(always=True)
    assert followed.known == supply(changed).known
    followed.describe(1, None, ())
    followed.review(always=True)
    assert followed.known == SupplyState()


def test_it_can_be_saved_and_restored() -> None:
    one, other = supply(node("a")), supply(node("b"), node("c"))
    saved = msgspec.json.decode(msgspec.json.encode(one.known), type=SupplyState)
    other.restore(saved)
    assert other.known == one.known
    assert other.review(always=True), "there are other nodes here"
    other.restore(None)
    assert other.known == supply(node("b"), node("c")).known


@pytest.mark.parametrize("cpu", [0, 1, 999])
def test_nodes_with_hardly_a_core_are_counted(cpu: int) -> None:
    assert supply(node("a", cpu=cpu)).known.cpu.groups == ((4, cpu),)
