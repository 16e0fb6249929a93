"""Where no single change helps, the smallest pair that does is found, and the work is bounded."""

import pytest

from alnair.model.nodes import Taint
from alnair.model.quota import Quota
from alnair.model.workload import PodSpec
from alnair.scheduler.advice import change_search
from alnair.scheduler.advice.diagnose import diagnose, find
from alnair.scheduler.advice.diagnosis import Diagnosis
from kit import invariants, make
from kit.world import World

TAINT = Taint("gpu", "NoSchedule", "yes")
OTHER = Taint("team", "NoSchedule", "x")


def explained(world: World, name: str = "p") -> Diagnosis:
    record = find(world.engine.view, "default", name)
    assert record is not None
    told = diagnose(world.engine.view, record, world.now)
    invariants.check(world.engine)
    assert diagnose(world.engine.view, record, world.now) == told, "asking changes nothing"
    return told


def waiting(world: World, asked: PodSpec) -> Diagnosis:
    world.create(make.pod("p", asked))
    world.settle()
    return explained(world)


def texts(told: Diagnosis) -> list[str]:
    assert not told.changes or not told.pairs
    return [pair.text for pair in told.pairs]


def test_two_taints_are_both_to_be_tolerated() -> None:
    told = waiting(World(make.node("a", taints=[TAINT, OTHER])), make.spec())
    assert not told.changes
    (pair,) = told.pairs
    assert pair.kinds == ("toleration", "toleration")
    assert pair.texts == (
        "tolerate the taint gpu=yes:NoSchedule",
        "tolerate the taint team=x:NoSchedule",
    )
    assert pair.node == "a"


def test_the_amount_of_a_pair_is_the_largest_that_fits() -> None:
    world = World(make.node("a", cpu=3000, taints=[TAINT]), make.node("b", cpu=1000))
    told = waiting(world, make.spec(cpu=4000, selector={"kubernetes.io/hostname": "a"}))
    assert texts(told)[0] == (
        "tolerate the taint gpu=yes:NoSchedule; and ask for 3000m of cpu instead of 4000m"
    )


def test_two_amounts_shrink_together_and_then_each_grows_as_far_as_the_other_allows() -> None:
    world = World(
        make.node("even", cpu=6000, memory=32 * make.GIB),
        make.node("odd", cpu=7900, memory=make.GIB),
    )
    told = waiting(world, make.spec(cpu=8000, memory=64 * make.GIB))
    assert texts(told) == [
        "ask for 6000m of cpu instead of 8000m; and ask for 32768Mi of memory instead of 65536Mi"
    ]
    assert told.pairs[0].node == "even"


def test_a_slice_shrinks_in_memory_and_compute() -> None:
    world = World(make.node("a", gpus=1, gpu_memory=16384))
    world.create(make.pod("there", make.spec(slice_mib=10000, compute=60)))
    world.settle()
    told = waiting(world, make.spec(slice_mib=12000, compute=80))
    (pair,) = told.pairs
    assert pair.text == (
        "ask for 6384 MiB of alnair/vgpu-memory instead of 12000 MiB; "
        "and ask for 40 % of alnair/vgpu-compute instead of 80 %"
    )


def test_the_smaller_pair_comes_first_and_a_typing_error_is_the_smallest() -> None:
    node = make.node("a", labels={"disk": "ssd", "zone": "west"})
    told = waiting(World(node), make.spec(selector={"disk": "sssd", "zone": "wesst"}))
    assert texts(told)[0] == (
        "select disk=ssd instead of disk=sssd; and select zone=west instead of zone=wesst"
    )
    assert len(told.pairs) == 3
    assert "drop" in told.pairs[-1].text


def test_a_gang_is_tried_whole_with_both_changes() -> None:
    world = World(
        make.node("a", cpu=4000, taints=[TAINT]), make.node("b", cpu=4000, taints=[TAINT])
    )
    world.declare(make.gang("g", 4))
    world.create(*make.members("g", 4, make.spec(cpu=3000)))
    world.settle(0.5)
    told = explained(world, "g-3")
    assert texts(told) == [
        "tolerate the taint gpu=yes:NoSchedule; and ask for 2000m of cpu instead of 3000m"
    ]
    assert not world.placed()


def test_where_one_change_helps_no_pair_is_looked_for() -> None:
    told = waiting(World(make.node("a", taints=[TAINT])), make.spec())
    assert len(told.changes) == 1
    assert not told.pairs
    assert told.pairs_tried == 0


def test_where_three_things_are_wrong_no_pair_is_named() -> None:
    node = make.node("a", cpu=1000, taints=[TAINT], unschedulable=True)
    told = waiting(World(node), make.spec(cpu=2000))
    assert not told.changes
    assert not told.pairs
    assert told.pairs_tried == 6
    assert told.all_pairs_tried


def test_a_quota_that_lacks_two_resources_is_met_by_a_pair() -> None:
    world = World(make.node("a", cpu=64_000, memory=256 * make.GIB))
    most = {"cpu": 2000, "memory": 4 * make.GIB}
    world.set_object("ElasticQuota", "q", Quota("q", {}, most), "default")
    told = waiting(world, make.spec(cpu=4000, memory=8 * make.GIB))
    assert texts(told) == [
        "ask for 2000m of cpu instead of 4000m; and ask for 4096Mi of memory instead of 8192Mi"
    ]


@pytest.mark.parametrize(
    ("limit", "value"), [("_PAIRS", 0), ("_PAIR_DECISIONS", 0), ("_BUDGET", 4)]
)
def test_what_is_left_out_to_stay_quick_is_said(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(change_search, limit, value)
    told = waiting(World(make.node("a", taints=[TAINT, OTHER])), make.spec())
    assert not told.pairs
    assert (told.tried, told.all_tried) == (4, True)
    assert not told.all_pairs_tried
