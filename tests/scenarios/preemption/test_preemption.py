"""Preemption through the whole engine: who must go, who waits, and what is held for whom."""

import msgspec
import pytest

from alnair.model.action import Evict, Nominate
from alnair.model.gpu_demand import ContainerGpus
from alnair.model.nodes import GpuLoad
from alnair.model.workload import GangTopology
from alnair.scheduler.advice.diagnose import diagnose, find
from kit import invariants, make
from kit.world import World


def evictions(world: World) -> list[Evict]:
    return [a for a in world.log if isinstance(a, Evict)]


def test_a_pod_evicts_the_fewest_pods_of_lower_priority_and_takes_their_place() -> None:
    world = World(make.node("a", cpu=4000), make.node("b", cpu=4000))
    for name, node, cpu in (("a1", "a", 2000), ("a2", "a", 2000), ("b1", "b", 4000)):
        world.create(make.pod(name, make.spec(cpu=cpu), node=node, priority=1, started=1.0))
    world.create(make.pod("high", make.spec(cpu=4000), priority=10))
    world.settle()
    assert world.evicted() == {"b1"}
    assert world.where("high") == ["b"]
    first = evictions(world)[0]
    assert (first.reason, first.message) == (
        "Preempted",
        "Preempted by pod uid-default-high on node b",
    )


def test_of_pods_of_one_priority_the_last_started_goes() -> None:
    world = World(make.node("n", cpu=4000))
    world.create(make.pod("old", make.spec(cpu=2000), node="n", started=1.0))
    world.create(make.pod("new", make.spec(cpu=2000), node="n", started=2.0))
    world.create(make.pod("high", make.spec(cpu=2000), priority=1))
    world.settle()
    assert world.evicted() == {"new"}


def test_pods_of_equal_or_higher_priority_are_never_evicted() -> None:
    world = World(make.node("n", cpu=4000))
    world.create(make.pod("equal", make.spec(cpu=2000), node="n", priority=5))
    world.create(make.pod("higher", make.spec(cpu=2000), node="n", priority=6))
    world.create(make.pod("p", make.spec(cpu=1000), priority=5))
    world.settle()
    assert not world.evicted()
    assert world.where("p") == [""]


def test_a_pod_whose_policy_is_never_evicts_nobody() -> None:
    world = World(make.node("n", cpu=4000))
    world.create(make.pod("low", make.spec(cpu=4000), node="n"))
    world.create(make.pod("p", make.spec(cpu=1000), priority=5, preempts=False))
    world.settle()
    assert not world.evicted()


def test_nobody_is_evicted_where_it_would_not_help() -> None:
    world = World(make.node("n", cpu=4000), make.node("small", cpu=1000))
    world.create(make.pod("low", make.spec(cpu=500), node="n"))
    world.create(make.pod("small", make.spec(cpu=1000), node="small"))
    world.create(make.pod("pinned", make.spec(cpu=3700), node="n", priority=9))
    world.create(make.pod("p", make.spec(cpu=1000, selector={"zone": "none"}), priority=5))
    world.create(make.pod("q", make.spec(cpu=2000), priority=5))
    world.settle()
    assert not world.evicted()


def test_a_budget_is_broken_only_where_there_is_no_other_way() -> None:
    world = World(make.node("a", cpu=2000), make.node("b", cpu=2000))
    guarded = {"app": "web"}
    world.budget(make.budget(app="web"))
    world.create(make.pod("web", make.spec(cpu=2000), node="a", labels=guarded))
    world.create(make.pod("other", make.spec(cpu=2000), node="b", priority=1))
    world.create(make.pod("p", make.spec(cpu=2000), priority=5))
    world.settle()
    assert world.evicted() == {"other"}
    world.create(make.pod("q", make.spec(cpu=2000), priority=5))
    world.settle()
    assert world.evicted() == {"other", "web"}


def test_while_its_victims_terminate_a_pod_waits_and_its_room_is_held() -> None:
    world = World(make.node("n", cpu=4000))
    world.graceful = True
    world.create(make.pod("low", make.spec(cpu=3000), node="n"))
    world.create(make.pod("high", make.spec(cpu=2000), priority=5))
    world.settle()
    assert world.pod("high").nominated == "n"
    # There is room for both of them beside `low`, or beside `high`, and not beside both.
    world.create(make.pod("thief", make.spec(cpu=1000), priority=5))
    world.create(make.pod("beside", make.spec(cpu=1000), priority=0))
    world.settle()
    assert world.where("high", "thief", "beside") == ["", "", ""]
    world.delete("low")
    world.settle()
    assert world.where("high", "thief", "beside") == ["n", "n", "n"]
    assert len(evictions(world)) == 1


def test_a_pod_of_higher_priority_takes_room_that_is_held_for_another() -> None:
    world = World(make.node("n", cpu=4000))
    world.graceful = True
    world.create(make.pod("low", make.spec(cpu=4000), node="n"))
    world.create(make.pod("middle", make.spec(cpu=3000), priority=5))
    world.settle()
    world.create(make.pod("high", make.spec(cpu=4000), priority=9))
    world.settle()
    assert (world.pod("middle").nominated, world.pod("high").nominated) == ("", "n")
    world.delete("low")
    world.settle()
    assert world.where("middle", "high") == ["", "n"]


def test_a_new_scheduler_holds_the_room_that_the_old_one_held() -> None:
    world = World(make.node("n", cpu=4000))
    world.graceful = True
    world.create(make.pod("low", make.spec(cpu=4000), node="n"))
    world.create(make.pod("low2", make.spec(cpu=100), node="n"))
    world.create(make.pod("high", make.spec(cpu=4000), priority=5))
    world.settle()
    world.crash()
    world.create(make.pod("thief", make.spec(cpu=4000), priority=4))
    world.settle()
    world.delete("low")
    world.delete("low2")
    world.settle()
    assert world.where("high", "thief") == ["n", ""]
    assert len(evictions(world)) == 2


@pytest.mark.parametrize("done", [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_a_crash_amid_the_evictions_costs_no_more_victims(done: tuple[int, ...]) -> None:
    world = World(make.node("n", cpu=4000), make.node("other", cpu=4000))
    for name, node in (("a", "n"), ("b", "n"), ("c", "other")):
        size = 2000 if node == "n" else 4000
        world.create(make.pod(name, make.spec(cpu=size), node=node, priority=node == "other"))
    world.create(make.pod("high", make.spec(cpu=4000), priority=5))
    world.step()
    assert len(world.outbox) == 3
    world.crash(done)
    world.settle()
    assert world.where("high") == ["n"]
    assert world.evicted() == {"a", "b"}


def test_an_eviction_that_fails_lets_the_pod_look_again() -> None:
    world = World(make.node("n", cpu=4000))
    world.create(make.pod("low", make.spec(cpu=4000), node="n"))
    world.create(make.pod("high", make.spec(cpu=2000), priority=5))
    failures = iter(["forbidden", "forbidden"])
    world.fault = lambda a: next(failures, "") if isinstance(a, Evict) else ""
    world.settle()
    assert world.where("high") == ["n"]


def test_when_pods_of_low_priority_come_later_a_waiting_pod_may_take_their_place() -> None:
    world = World(make.node("n", cpu=4000))
    world.create(make.pod("rock", make.spec(cpu=3000), node="n", priority=9))
    world.create(make.pod("low", make.spec(cpu=1000), node="n"))
    world.create(make.pod("p", make.spec(cpu=2000), priority=5))
    world.settle()
    assert world.where("p") == [""]
    world.delete("rock")
    world.create(make.pod("filler", make.spec(cpu=2500), node="n", scheduler="default-scheduler"))
    world.settle()
    assert world.where("p") == ["n"]
    assert world.evicted() == {"filler"}


def test_pods_that_come_and_go_behind_one_that_stays_are_forgotten() -> None:
    world = World(make.node("n", cpu=4000), check=False)
    world.create(make.pod("low", make.spec(cpu=1000), node="n"))
    world.create(make.pod("rock", make.spec(cpu=3000), node="n", priority=9))
    for i in range(300):
        world.create(make.pod(f"p{i}", make.spec(cpu=2000), priority=5, created=float(i)))
        world.step()
        if i:
            world.delete(f"p{i}")
    world.settle()
    assert 0 < len(world.engine._preemption.retries) < 100


@pytest.mark.parametrize(
    ("priority", "preempts", "told"),
    [
        (0, True, "0/1 nodes are available: 1 No preemption victims found for incoming pod."),
        (5, False, "not eligible due to preemptionPolicy=Never."),
        (5, True, "not eligible due to a terminating pod on the nominated node."),
    ],
)
def test_explain_tells_what_preemption_can_do(priority: int, preempts: bool, told: str) -> None:
    world = World(make.node("n", cpu=4000))
    world.graceful = True
    world.create(make.pod("low", make.spec(cpu=4000), node="n"))
    world.create(make.pod("p", make.spec(cpu=2000), priority=priority, preempts=preempts))
    world.settle()
    record = find(world.engine.view, "default", "p")
    assert record is not None
    assert diagnose(world.engine.view, record, world.now).preemption == told
    invariants.check(world.engine)


# --- GPUs -----------------------------------------------------------------------------------------


def gpu_pod(name: str, node: str, slot: int, mib: int, priority: int = 0) -> object:
    device = make.gpu(node, slot)
    asked = make.spec(slice_mib=mib) if mib else make.spec(whole=1)
    assignment = (("main", (make.share(device, mib),)),)
    return make.pod(name, asked, node=node, assignment=assignment, priority=priority)


def test_for_a_slice_one_gpu_is_emptied_and_not_two_by_halves() -> None:
    world = World(make.node("n", gpus=2))
    world.create(gpu_pod("a1", "n", 0, 20000), gpu_pod("a2", "n", 0, 20000))
    world.create(gpu_pod("b", "n", 1, 40000))
    world.create(make.pod("p", make.spec(slice_mib=40000), priority=5))
    world.settle()
    assert world.evicted() == {"b"}
    assert world.pod("p").node == "n"


def test_whole_gpus_come_from_those_that_cost_least() -> None:
    world = World(make.node("n", gpus=4))
    world.create(gpu_pod("dear", "n", 0, 1000, 4), gpu_pod("cheap", "n", 0, 1000, 0))
    for slot in (1, 2, 3):
        world.create(gpu_pod(f"one{slot}", "n", slot, 0, slot))
    world.create(make.pod("p", make.spec(whole=2), priority=5))
    world.settle()
    assert world.evicted() == {"one1", "one2"}


def test_a_slice_beside_whole_gpus_is_made_room_for_together() -> None:
    world = World(make.node("n", gpus=2))
    world.create(gpu_pod("whole", "n", 0, 0), gpu_pod("slice", "n", 1, 30000))
    both = [
        ContainerGpus("a", {"nvidia.com/gpu": 1}),
        ContainerGpus("b", {"alnair/vgpu-memory": 10000}),
    ]
    world.create(make.pod("p", make.spec(containers=both), priority=5))
    world.settle()
    assert world.evicted() == {"whole"}
    assert world.pod("p").node == "n"


def test_hard_shares_make_room_for_hard_ones_and_soft_ones_may_stay() -> None:
    world = World(make.node("n", gpus=1, factor=1.5))
    device = make.gpu("n", 0)
    for name, compute, soft in (("soft", 60, True), ("hard", 60, False)):
        asked = make.spec(slice_mib=1024, compute=compute, soft=soft)
        assignment = (("main", (make.share(device, 1024, compute),)),)
        started = 2.0 if soft else 1.0  # by its start alone, the soft one would go
        world.create(make.pod(name, asked, node="n", assignment=assignment, started=started))
    world.create(make.pod("p", make.spec(slice_mib=1024, compute=50), priority=5))
    world.settle()
    assert world.evicted() == {"hard"}
    world.check_room()


# --- gangs ----------------------------------------------------------------------------------------


def test_a_gang_preempts_for_all_that_it_lacks_or_for_none() -> None:
    world = World(make.node("a", cpu=2000), make.node("b", cpu=2000))
    world.create(make.pod("low", make.spec(cpu=2000), node="a"))
    world.create(make.pod("rock", make.spec(cpu=2000), node="b", priority=9))
    world.declare(make.gang("g", 2))
    members = make.members("g", 2, make.spec(cpu=2000), priority=5)
    world.create(*members)
    world.settle()
    assert not world.evicted()
    world.put(make.node("c", cpu=2000))
    world.settle()
    assert world.evicted() == {"low"}
    assert world.placed() >= {"g-0", "g-1"}


def test_a_gang_evicts_no_more_than_it_needs_and_starts_when_all_have_left() -> None:
    world = World(*(make.node(f"n{i}", cpu=2000) for i in range(3)))
    world.graceful = True
    for i in range(3):
        world.create(make.pod(f"big{i}", make.spec(cpu=1500), node=f"n{i}", priority=i))
        world.create(make.pod(f"small{i}", make.spec(cpu=500), node=f"n{i}", priority=i))
    world.declare(make.gang("g", 2))
    world.create(*make.members("g", 2, make.spec(cpu=1500), priority=5))
    world.settle()
    assert world.evicted() == {"big0", "big1"}
    world.delete("big0")
    world.settle()
    assert not world.placed() & {"g-0", "g-1"}
    world.delete("big1")
    world.settle()
    assert world.placed() >= {"g-0", "g-1"}
    assert world.evicted() == {"big0", "big1"}


def test_a_gang_that_must_lie_in_one_rack_makes_room_in_the_cheapest() -> None:
    world = World(
        *(
            make.node(f"{rack}{i}", cpu=2000, labels={"rack": rack})
            for rack in "ab"
            for i in range(2)
        )
    )
    for name, priority in (("a0", 0), ("a1", 3), ("b0", 1), ("b1", 2)):
        world.create(make.pod(f"on-{name}", make.spec(cpu=2000), node=name, priority=priority))
    gang = make.gang("g", 2)
    world.declare(msgspec.structs.replace(gang, topology=GangTopology(required="rack")))
    world.create(*make.members("g", 2, make.spec(cpu=2000), priority=5))
    world.settle()
    assert world.evicted() == {"on-b0", "on-b1"}
    assert set(world.where("g-0", "g-1")) == {"b0", "b1"}


def running_gang(world: World, count: int, minimum: int, priority: int) -> None:
    world.declare(make.gang("v", minimum))
    world.create(*make.members("v", count, make.spec(cpu=2000), priority=priority))
    world.settle()
    assert len(world.placed()) == count


def test_a_gang_that_would_fall_below_its_minimum_goes_whole() -> None:
    world = World(make.node("a", cpu=2000), make.node("b", cpu=2000))
    running_gang(world, 2, 2, priority=1)
    world.create(make.pod("p", make.spec(cpu=2000), priority=5))
    world.settle()
    assert world.evicted() == {"v-0", "v-1"}


def test_a_lone_pod_is_evicted_rather_than_a_gang_of_the_same_priority() -> None:
    world = World(make.node("a", cpu=2000), make.node("b", cpu=2000))
    running_gang(world, 2, 2, priority=1)
    world.put(make.node("c", cpu=2000))
    world.create(make.pod("lone", make.spec(cpu=2000), node="c", priority=1))
    world.create(make.pod("p", make.spec(cpu=2000), priority=5))
    world.settle()
    assert world.evicted() == {"lone"}


def test_of_a_gang_with_spare_members_only_those_are_evicted() -> None:
    world = World(*(make.node(name, cpu=2000) for name in "abc"))
    running_gang(world, 3, 2, priority=1)
    world.create(make.pod("p", make.spec(cpu=2000), priority=5))
    world.settle()
    assert len(world.evicted()) == 1
    world.create(make.pod("q", make.spec(cpu=2000), priority=5))
    world.settle()
    assert world.evicted() == {"v-0", "v-1", "v-2"}


def test_a_gang_with_one_member_of_higher_priority_is_left_alone() -> None:
    world = World(make.node("a", cpu=2000), make.node("b", cpu=2000))
    world.declare(make.gang("v", 2))
    first, _ = make.members("v", 2, make.spec(cpu=2000), priority=1)
    world.create(first, make.pod("v-9", make.spec(cpu=2000), group="v", priority=9))
    world.settle()
    assert len(world.placed()) == 2
    world.create(make.pod("p", make.spec(cpu=2000), priority=5))
    world.settle()
    assert not world.evicted()


# --- idle pods ------------------------------------------------------------------------------------


def test_pods_that_have_been_idle_for_long_and_allow_it_go_first() -> None:
    world = World(make.node("a", cpu=2000), make.node("b", cpu=2000))
    world.now = 10_000.0
    idle = {"idle_since": 9000.0, "reclaimable": "idle"}
    world.create(make.pod("busy", make.spec(cpu=2000), node="a", priority=1))
    world.create(make.pod("idle", make.spec(cpu=2000), node="b", priority=5, **idle))
    world.create(make.pod("p", make.spec(cpu=2000), priority=5))
    world.settle()
    assert world.evicted() == {"idle"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"idle_since": 9900.0}, "idle for less than ten minutes"),
        ({"reclaimable": ""}, "not asked for"),
        ({"reclaimable": "never"}, "declined"),
        ({"priority": 6}, "more important"),
        ({"idle_since": 0.0}, "not idle"),
    ],
)
def test_other_pods_are_no_victims_for_being_idle(changes: dict[str, object], why: str) -> None:
    world = World(make.node("a", cpu=2000))
    world.now = 10_000.0
    idle = {"idle_since": 9000.0, "reclaimable": "idle", "priority": 5, **changes}
    world.create(make.pod("idle", make.spec(cpu=2000), node="a", **idle))
    world.create(make.pod("p", make.spec(cpu=2000), priority=5))
    world.settle(seconds=60)
    assert not world.evicted(), why


@pytest.mark.parametrize("silent", [False, True])
def test_what_a_dead_agent_said_of_a_pod_makes_it_no_victim(silent: bool) -> None:
    node = make.node("a", cpu=2000, gpus=1)
    load = GpuLoad(node.gpus[0].uuid, 0.0, 0, 9000.0 if silent else 10_000.0)
    world = World(msgspec.structs.replace(node, loads=(load,), agent_lease="alnair-agent-a"))
    world.now = 10_000.0
    idle = {"idle_since": 9000.0, "reclaimable": "idle", "priority": 5}
    world.create(make.pod("idle", make.spec(cpu=2000), node="a", **idle))
    world.create(make.pod("p", make.spec(cpu=2000), priority=5))
    world.settle(seconds=20)
    assert world.evicted() == (set() if silent else {"idle"})


def test_a_nomination_that_is_given_up_is_taken_off_the_pod() -> None:
    world = World(make.node("n", cpu=4000))
    world.graceful = True
    world.create(make.pod("low", make.spec(cpu=4000), node="n"))
    world.create(make.pod("p", make.spec(cpu=3000), priority=5))
    world.settle()
    world.foreign(make.pod("rock", make.spec(cpu=4000), priority=9), "n")
    world.delete("low")
    world.settle()
    assert world.pod("p").nominated == ""
    assert [a.node for a in world.log if isinstance(a, Nominate)] == ["n", ""]


def test_a_gang_takes_the_room_of_one_whose_other_member_was_on_a_node_that_is_gone() -> None:
    world = World(make.node("n0", cpu=4000), make.node("n1", cpu=4000))
    world.declare(make.gang("low", 2))
    world.create(*make.members("low", 2, make.spec(cpu=3000)))
    world.settle()
    world.remove("n1")
    world.declare(make.gang("high", 2))
    world.create(*make.members("high", 2, make.spec(cpu=2000), priority=9))
    world.settle()
    assert world.where("high-0", "high-1") == ["n0", "n0"]
    assert world.evicted() == {p for p in ("low-0", "low-1") if p not in world.placed()}
