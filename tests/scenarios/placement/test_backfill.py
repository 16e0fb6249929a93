"""EASY backfill: what waits long gets a reservation, and short pods still fill the gaps."""

import msgspec

from alnair.model import names
from alnair.model.quota import Quota
from alnair.model.workload import Pod
from alnair.scheduler.placement.backfill import PATIENCE, Backfill
from kit import make
from kit.world import World


def job(name: str, gpus: int, limit: int = 0, created: float = 0.0) -> Pod:
    return make.pod(name, make.spec(whole=gpus), time_limit=limit, created=created)


def busy(limits: tuple[int, ...]) -> World:
    """One node of 4 GPUs per limit, filled by a pod that ends after so many seconds."""
    world = World(*(make.node(f"n{i}", cpu=64000, gpus=4) for i in range(len(limits))))
    world.create(*(job(f"run{i}", 4, limit) for i, limit in enumerate(limits)))
    world.settle(0)
    assert len(world.placed()) == len(limits)
    return world


def wait(world: World, seconds: float) -> None:
    """Let time pass, in steps that the engine asks for."""
    until = world.now + seconds
    while world.now < until:
        world.settle(0)
        wake = world.engine.next_wake(world.now)
        world.now = min(until, wake) if wake is not None and wake > world.now else until
    world.settle(0)


def test_small_pods_do_not_starve_a_gang_beyond_the_limits_of_what_runs() -> None:
    world = busy((1000, 2000))
    world.declare(make.gang("big", 2))
    world.create(*make.members("big", 2, make.spec(whole=4), created=1.0))
    wait(world, PATIENCE + 60)
    kept = world.engine.view.reservation
    assert kept is not None
    assert len(kept.rows) == 2
    started = world.pod("run1").bound_at
    assert kept.until == started + 2000
    world.now = started + 1000
    world.delete("run0")
    world.create(job("endless", 1, created=2.0), job("long", 1, 5000, created=2.0))
    world.create(job("short", 1, 600, created=2.0))
    wait(world, 60)
    assert world.placed() == {"run1", "short"}, "only what ends before the gang starts goes first"
    assert any("reserved for gang default/big" in r.message for r in world.reports)
    world.now = started + 2000
    world.delete("run1")
    world.delete("short")
    wait(world, 60)
    assert {"big-0", "big-1"} <= world.placed()
    assert (
        world.engine._admission.allowed(
            world.engine.view.unit_of(world.engine.view.pods[world.pod("long").uid]),  # type: ignore[arg-type]
            world.engine.view.pods[world.pod("long").uid],
            world.now,
        )
        is None
    )


def test_nodes_that_the_holder_does_not_need_are_free_to_all() -> None:
    world = busy((1000, 3000))
    world.create(job("whole", 4, created=1.0))
    wait(world, PATIENCE + 60)
    kept = world.engine.view.reservation
    assert kept is not None
    row = world.engine.view.cluster.columns.row_of[world.pod("run0").node]
    assert kept.rows == (row,)
    world.delete("run1")
    wait(world, 60)
    assert "whole" in world.placed(), "a node came free earlier than the limits said"


def test_units_before_the_holder_are_not_kept_off() -> None:
    world = busy((1000,))
    world.create(job("whole", 4, created=1.0))
    wait(world, PATIENCE + 60)
    assert world.engine.view.reservation is not None
    world.create(make.pod("urgent", make.spec(whole=1), priority=10, created=9.0))
    world.delete("run0")
    wait(world, 10)
    assert "urgent" in world.placed()


def test_without_time_limits_nothing_is_reserved() -> None:
    world = busy((0,))
    world.create(job("whole", 4, created=1.0))
    wait(world, 10 * PATIENCE)
    assert world.engine.view.reservation is None


def test_an_engine_without_patience_reserves_nothing() -> None:
    world = busy((1000,))
    engine = world.engine
    engine._backfill = Backfill(engine.view._context, engine._admission, None)
    world.create(job("whole", 4, created=1.0))
    wait(world, PATIENCE + 60)
    assert world.engine.view.reservation is None


def test_what_would_not_fit_an_empty_cluster_reserves_nothing() -> None:
    world = busy((1000,))
    world.create(job("monster", 5, created=1.0), job("whole", 4, created=2.0))
    wait(world, PATIENCE + 60)
    kept = world.engine.view.reservation
    assert kept is not None
    assert kept.holder.name == "pod default/whole"


def test_the_reservation_goes_with_its_holder_and_survives_a_restart_anew() -> None:
    world = busy((1000,))
    world.create(job("whole", 4, created=1.0))
    wait(world, PATIENCE + 60)
    world.restart()
    assert world.engine.view.reservation is None
    wait(world, PATIENCE + 60)
    assert world.engine.view.reservation is not None
    world.delete("whole")
    wait(world, 60)
    assert world.engine.view.reservation is None


def test_a_gang_that_must_lie_in_one_rack_gets_nodes_of_one_rack() -> None:
    rack = names.TOPOLOGY_PREFIX + "rack"
    limits = {"a0": 1000, "b0": 1500, "a1": 2000, "b1": 3000}
    world = World(
        *(make.node(n, cpu=64000, gpus=4, labels={rack: n[0], "name": n}) for n in limits)
    )
    world.create(
        *(
            make.pod(f"on-{n}", make.spec(whole=4, selector={"name": n}), time_limit=limit)
            for n, limit in limits.items()
        )
    )
    world.settle(0)
    world.declare(make.gang("big", 2, required=rack))
    world.create(*make.members("big", 2, make.spec(whole=4), created=1.0))
    wait(world, PATIENCE + 60)
    kept = world.engine.view.reservation
    assert kept is not None
    rows = world.engine.view.cluster.columns.row_of
    assert set(kept.rows) == {rows["a0"], rows["a1"]}
    # Two nodes of different racks would be free earlier.
    assert kept.until == world.pod("on-a1").bound_at + 2000


def test_nodes_are_kept_for_nobody_whom_room_alone_does_not_help() -> None:
    world = busy((1000, 2000))
    world.declare(make.gang("part", 3))
    world.create(*make.members("part", 2, created=1.0))
    world.create(make.pod("broken", problem="cannot be", created=1.0))
    world.set_object("ElasticQuota", "q", Quota("q", {names.GPU: 0}, {names.GPU: 0}), "team")
    bounded = job("bounded", 1, created=1.0)
    world.create(msgspec.structs.replace(bounded, namespace="team"))
    wait(world, PATIENCE + 60)
    assert world.engine.view.reservation is None
    world.create(*(job(f"waits{i}", 4, created=2.0) for i in range(2)))
    wait(world, PATIENCE + 60)
    kept = world.engine.view.reservation
    assert kept is not None
    assert kept.holder.name == "pod default/waits0", "those who only wait are before it, not it"
