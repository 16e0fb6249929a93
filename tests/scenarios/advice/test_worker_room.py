"""How many workers would start now, and where, by the scheduler's own code."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from alnair.elastic import fair_plan
from alnair.model import names
from alnair.model.api_types import Holdings
from alnair.model.elastic_plan import ElasticDemand, Plan
from alnair.model.quota import Quota
from alnair.scheduler.advice.holdings import holdings
from alnair.scheduler.advice.worker_room import Startable, WorkerRoom, WorkerTemplate, worker_room
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.profiles import profiles
from kit import invariants, make
from kit.world import World


def template(name: str = "job", gpus: int = 1, *, least: int = 1, **rest: Any) -> WorkerTemplate:
    gang_says = {k: rest.pop(k) for k in ("required", "preferred") if k in rest}
    return WorkerTemplate(
        make.gang(name, least, **gang_says), make.pod("worker", make.spec(whole=gpus), **rest)
    )


def follower(world: World) -> Engine:
    """An engine that knows the same, with what the leader holds."""
    engine = Engine(profiles(), seed=world.seed)
    engine.follow(list(world.known()), world.now, holdings(world.engine.view))
    return engine


def ask(
    engine: Engine,
    one: WorkerTemplate,
    most: int,
    held_back: Mapping[str, Mapping[str, int]] | None = None,
) -> Startable:
    with worker_room(engine.view, {"job": one}, 1000.0, held_back) as room:
        found = room.startable("job", most)
    invariants.check(engine)
    return found


def test_as_many_start_as_gpus_are_free_and_no_more_than_asked() -> None:
    world = World(make.node("a", gpus=2), make.node("b", gpus=1))
    world.settle()
    found = ask(follower(world), template(), 8)
    assert (found.workers, found.kept, dict(found.nodes)) == (3, 0, {"a": 2, "b": 1})
    assert "Insufficient nvidia.com/gpu" in found.why
    assert ask(follower(world), template(), 2).workers == 2
    assert not ask(follower(world), template(), 2).why


def test_it_is_feasibility_and_not_a_sum() -> None:
    world = World(make.node("a", gpus=3), make.node("b", gpus=3))
    world.settle()
    assert ask(follower(world), template(gpus=2), 3).workers == 2


def test_its_own_workers_stay_where_they_are() -> None:
    world = World(make.node("a", gpus=2), make.node("b", gpus=2))
    world.declare(make.gang("job", 2))
    world.create(*make.members("job", 2, make.spec(whole=1)))
    world.settle()
    found = ask(follower(world), template(), 8)
    assert (found.workers, found.kept) == (4, 2)


def test_a_required_topology_is_kept() -> None:
    world = World(*(make.node(f"{r}{i}", gpus=1, labels={"rack": r}) for r in "ab" for i in "123"))
    world.create(make.pod("other", make.spec(whole=1)))
    world.settle()
    assert ask(follower(world), template(required="example/rack"), 6).workers == 0
    world = World(
        *(make.node(f"{r}{i}", gpus=1, labels={"my/rack": r}) for r in "ab" for i in "123")
    )
    world.settle()
    assert ask(follower(world), template(required="my/rack"), 6).workers == 3


def test_room_that_is_held_for_others_is_not_given() -> None:
    world = World(make.node("a", gpus=2))
    world.graceful = True
    world.create(*(make.pod(f"low-{i}", make.spec(whole=1)) for i in range(2)))
    world.settle()
    world.create(make.pod("high", make.spec(whole=2), priority=5))
    world.settle(0.0)
    low = next(p for p in world.pods.values() if p.name == "low-0")
    world.delete_uid(low.uid)
    world.step()
    assert holdings(world.engine.view).room[0].pod == "default/high"
    assert ask(follower(world), template(), 2).workers == 0
    assert ask(follower(world), template(priority=9), 2).workers == 1, "it need not care"


def test_reserved_nodes_are_not_given() -> None:
    world = World(make.node("a", gpus=2), make.node("b", gpus=1))
    world.create(make.pod("long", make.spec(whole=1), time_limit=4000, node="a"))
    world.create(make.pod("large", make.spec(whole=2), created=world.now))
    world.settle()
    world.now += 400.0
    world.settle(100.0)
    kept = holdings(world.engine.view).nodes
    assert kept is not None
    assert kept.nodes == ("a",)
    late = msgspec.structs.replace(template(), gang=make.gang("job", 1, created=world.now))
    found = ask(follower(world), late, 2)
    assert (found.workers, dict(found.nodes)) == (1, {"b": 1})
    assert "reserved" in found.why


def test_what_others_will_take_back_by_quota_is_not_given_to_who_borrows() -> None:
    world = World(make.node("a", gpus=1), make.node("b", gpus=1))
    world.set_object("ElasticQuota", "q", Quota("q", {names.GPU: 2}), "team")
    world.create(make.pod("mine", make.spec(whole=2), namespace="team"))
    world.settle()
    held = holdings(world.engine.view)
    assert held.quota == {"team": {names.GPU: 2}}
    assert ask(follower(world), template(), 2, held.quota).workers == 0
    assert ask(follower(world), template(), 2).workers == 2
    own = msgspec.structs.replace(
        template(),
        gang=make.gang("job", 1, namespace="team"),
        pod=make.pod("worker", make.spec(whole=1), namespace="team"),
    )
    assert ask(follower(world), own, 2, held.quota).workers == 2


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"scheduler": "nobody"}, "no scheduler serves 'nobody' here"),
        ({"problem": "wrong"}, "wrong"),
    ],
)
def test_what_nobody_will_place_is_told(change: dict[str, Any], why: str) -> None:
    world = World(make.node("a", gpus=2))
    world.settle()
    found = ask(follower(world), template(**change), 2)
    assert found.workers == 0
    assert why in found.why


def rooms(world: World, **sizes: int) -> dict[str, WorkerTemplate]:
    """Jobs that run with so many workers."""
    for name, size in sizes.items():
        world.declare(make.gang(name, 1))
        if size:
            world.create(*make.members(name, size, make.spec(whole=1)))
            world.settle()
    return {name: template(name) for name in sizes}


def free(room: WorkerRoom, key: str) -> int:
    return room.startable(key, 99).workers - room.startable(key, 0).workers


def test_what_is_placed_in_the_room_is_taken_from_nobody_and_seen_by_the_next() -> None:
    world = World(make.node("a", gpus=4))
    jobs = rooms(world, x=2, y=0)
    with worker_room(world.engine.view, jobs, world.now) as room:
        assert not room.place("y", 3)
        assert room.place("y", 2)
        assert not room.place("x", 1)
        room.release("x", 1)
        assert room.place("y", 1)
        assert not room.place("x", 1), "where it was is taken"
        room.release("y", 1)
        assert room.place("x", 1)
    invariants.check(world.engine)
    with worker_room(world.engine.view, jobs, world.now) as room:
        assert free(room, "y") == 2
    assert len(world.placed()) == 2


def test_the_highest_numbers_go_first_and_come_back_to_where_they_were() -> None:
    world = World(*(make.node(f"n{i}", gpus=1) for i in range(3)))
    jobs = rooms(world, x=3, y=0)
    where = world.pod("x-2").node
    with worker_room(world.engine.view, jobs, world.now) as room:
        room.release("x", 1)
        found = room.startable("y", 1)
        assert dict(found.nodes) == {where: 1}
        assert room.place("x", 1)
        assert room.startable("y", 1).workers == 0
    invariants.check(world.engine)


def test_a_waiting_pod_or_gang_is_placed_as_a_whole() -> None:
    world = World(make.node("a", gpus=4))
    jobs = rooms(world, x=4)
    world.declare(make.gang("other", 2))
    world.create(*make.members("other", 2, make.spec(whole=1)))
    world.create(make.pod("lone", make.spec(whole=1)))
    world.settle()
    lone = world.pod("lone").uid
    with worker_room(world.engine.view, jobs, world.now) as room:
        room.release("x", 1)
        assert not room.place("gang:default/other", 1)
        room.release("x", 1)
        assert room.place("gang:default/other", 1)
        assert not room.place(lone, 1)
        room.release("x", 1)
        assert room.place(lone, 1)
        assert not room.place("x", 1)
    invariants.check(world.engine)


def test_a_follower_hears_the_same_as_who_asks_the_leader() -> None:
    """Changes reach it one by one, and it never decides."""
    world = World(make.node("a", gpus=2), make.node("b", gpus=1))
    world.graceful = True
    engine = Engine(profiles(), seed=world.seed)
    engine.follow(list(world.known()), world.now)
    answers = events.BindDone, events.EvictDone, events.PlanDone
    counts = set()
    for number in range(6):
        world.create(make.pod(f"p{number}", make.spec(whole=1), priority=number))
        if number == 4:
            world.delete_uid(next(p.uid for p in world.pods.values() if p.deleting))
        batch = []
        for _ in range(9):
            batch += list(world.inbox)
            world.step()
            while world.outbox:
                world.carry_out()
        engine.follow(
            [e for e in batch if not isinstance(e, answers)],
            world.now,
            holdings(world.engine.view),
        )
        for priority in (0, 9):
            mine = template(priority=priority)
            found = ask(engine, mine, 9)
            counts.add(found.workers)
            assert found == ask(world.engine, mine, 9)
    assert counts == {0, 1, 2}


# --- as the room of a plan ------------------------------------------------------------------------


def demand(key: str, placed: int, wish: int = 8, **more: Any) -> ElasticDemand:
    """A job of one GPU a worker, which runs for long."""
    given: dict[str, Any] = {"size": placed, "placed": placed, "started": placed > 0, **more}
    return ElasticDemand(key=key, least=1, wish=wish, **given)


def planned(engine: Engine, held: Holdings, now: float, *jobs: ElasticDemand) -> Plan:
    """What jobs are given by an engine that follows."""
    templates = {job.key: template(job.key) for job in jobs}
    with worker_room(engine.view, templates, now, held.quota) as room:
        made = fair_plan.plan(jobs, room.cluster(), now)
    invariants.check(engine)
    return made


def follow(engine: Engine, world: World, batch: Sequence[events.Event]) -> Holdings:
    """Have the engine take in what happened and what the leader holds now."""
    held = holdings(world.engine.view)
    engine.follow(batch, world.now, held)
    return held


def test_a_running_job_does_not_grow_onto_reserved_nodes() -> None:
    world = World(make.node("a", gpus=2), make.node("b", gpus=2))
    rooms(world, x=1)
    where = world.pod("x-0").node
    other = "b" if where == "a" else "a"
    world.create(make.pod("long", make.spec(whole=1), time_limit=4000, node=other))
    world.create(make.pod("large", make.spec(whole=2), created=world.now))
    world.settle()
    world.now += 400.0
    world.settle(100.0)
    engine = follower(world)
    held = follow(engine, world, [])
    assert held.nodes is not None
    assert held.nodes.nodes == (other,)
    # The job is older than what the node is kept for; so it would be let in by its age.
    assert planned(engine, held, world.now, demand("x", 1)).sizes == {"x": 2}


def test_a_quota_that_changes_while_a_follower_runs_counts_at_the_next_plan() -> None:
    world = World(make.node("a", gpus=4))
    rooms(world, x=1)
    engine = follower(world)

    def grown() -> int:
        return planned(engine, follow(engine, world, []), world.now, demand("x", 1)).sizes["x"]

    assert grown() == 4
    for most in (2, 3):
        quota = Quota("q", {names.GPU: most}, {names.GPU: most})
        world.set_object("ElasticQuota", "q", quota, "default")
        batch = list(world.inbox)
        world.settle()
        follow(engine, world, batch)
        assert grown() == most


def test_nobody_leaves_for_a_pod_for_which_room_is_held_already() -> None:
    world = World(make.node("a", gpus=4))
    world.graceful = True
    rooms(world, x=3)
    world.create(make.pod("low", make.spec(whole=1)))
    world.settle()
    world.create(make.pod("high", make.spec(whole=1), priority=5))
    world.settle(0.0)
    assert [room.pod for room in holdings(world.engine.view).room] == ["default/high"]
    engine = follower(world)
    assert planned(engine, follow(engine, world, []), world.now, demand("x", 3)).changes == ()


def test_a_gang_of_which_pods_are_missing_is_not_made_room_for() -> None:
    world = World(make.node("a", gpus=4))
    rooms(world, x=4)
    world.declare(make.gang("half", 2))
    world.create(*make.members("half", 2, make.spec(whole=1))[:1])
    world.settle()
    engine = follower(world)
    assert planned(engine, follow(engine, world, []), world.now, demand("x", 4)).changes == ()


def test_workers_of_a_node_that_is_gone_hold_nothing() -> None:
    world = World(make.node("a", gpus=1))
    rooms(world, x=1)
    gone = msgspec.structs.replace(world.pod("x-0"), node="gone")
    engine = Engine(profiles(), seed=world.seed)
    known = [e for e in world.known() if not isinstance(e, events.PodChanged)]
    engine.follow([*known, events.PodChanged(gone)], world.now)
    lost = demand("x", 0, size=1, wish=1, started=True)
    one = msgspec.structs.replace(template("x"), pods=(gone.uid,))
    with worker_room(engine.view, {"x": one}, world.now) as room:
        assert fair_plan.plan([lost], room.cluster(), world.now).sizes == {"x": 1}
        assert not room.place("x", 1), "the place of the lost one is kept"
    invariants.check(engine)
