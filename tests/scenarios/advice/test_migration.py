"""Members of elastic gangs leave nodes one at a time, and the gang never has too few."""

from typing import Any

import msgspec
import pytest

from alnair.scheduler.advice.migration import MigrationPlan, MigrationStep, migration
from alnair.scheduler.advice.rebalance import Rebalance
from kit import invariants, make
from kit.world import World

KEY = ("default", "job")


def running(workers: int, least: int, *gpus: int, **rest: Any) -> World:
    """A job of so many workers, of one GPU each, on nodes named a, b and so on."""
    names = "abcdef"[: len(gpus)]
    nodes = (make.node(name, gpus=count) for name, count in zip(names, gpus, strict=True))
    world = World(*nodes, order=list(names))
    gang = msgspec.structs.replace(make.gang("job", workers), elastic_min=least)
    world.declare(gang)
    for one in make.members("job", workers, make.spec(whole=1)):
        world.create(msgspec.structs.replace(one, owned=True, **rest))
    world.settle()
    assert len(world.placed()) == workers
    return world


def plan(world: World, *leave: str, most: int = 9) -> MigrationPlan:
    found = migration(world.engine.view, KEY, leave, most)
    invariants.check(world.engine)
    return found


def carried_out(world: World, found: MigrationPlan, leave: str) -> list[int]:
    """Do as the plan says, by evictions and a StatefulSet; returns how many worked at each step."""
    node = msgspec.structs.replace(world.nodes[leave], unschedulable=True)
    world.put(node)
    working = []
    for step in found.steps:
        if step.what == "move":
            old = world.pod(step.pod)
            world.delete(step.pod)
            again = msgspec.structs.replace(old, uid=old.uid + "x", node="", assignment=())
            world.create(again)
            working.append(len(world.placed()))
        elif step.what == "grow":
            count = len(world.pods)
            new = make.pod(f"job-{count}", make.spec(whole=1), group="job", owned=True)
            world.create(new)
        else:
            world.delete(f"job-{len(world.pods) - 1}")
        world.settle()
        working.append(len(world.placed()))
    return working


def test_a_job_with_workers_to_spare_moves_them_one_after_the_other() -> None:
    world = running(2, 1, 2, 2)
    assert world.where("job-0", "job-1") == ["a", "a"]
    found = plan(world, "a")
    assert found.steps == (
        MigrationStep("move", "job-0", "a", "b"),
        MigrationStep("move", "job-1", "a", "b"),
    )
    assert min(carried_out(world, found, "a")) == 1
    assert world.where("job-0", "job-1") == ["b", "b"]
    assert not world.evicted()


def test_a_job_without_any_to_spare_grows_elsewhere_first_and_shrinks_in_the_end() -> None:
    world = running(2, 2, 2, 3)
    leave = world.where("job-0")[0]
    found = plan(world, leave)
    assert [step.what for step in found.steps] == ["grow", "move", "move", "shrink"]
    assert min(carried_out(world, found, leave)) == 2
    assert leave not in world.where("job-0", "job-1")
    assert len(world.placed()) == 2


@pytest.mark.parametrize(
    ("workers", "least", "gpus", "most", "why"),
    [
        (2, 1, (2, 1), 9, "pod job-1 fits on no node but those that it shall leave"),
        (2, 2, (2, 0), 9, "a further one fits nowhere else"),
        (2, 2, (2, 3), 2, "may not have more than 2"),
    ],
)
def test_what_cannot_be_done_is_told_before_anything_is(
    workers: int, least: int, gpus: tuple[int, ...], most: int, why: str
) -> None:
    world = running(workers, least, *gpus)
    found = plan(world, world.where("job-0")[0], most=most)
    assert why in found.problem
    assert not found.steps


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"owned": False}, "no controller would replace pod job-0"),
        ({"evictable": False}, "annotation ai.centaurus.io/evictable of pod job-0 is false"),
    ],
)
def test_a_pod_that_may_not_go_stays(change: dict[str, bool], why: str) -> None:
    world = running(2, 1, 2, 2)
    world.update("job-0", **change)
    world.step()
    assert why in plan(world, "a").problem


def test_only_elastic_gangs_migrate_and_only_from_where_they_are() -> None:
    world = running(2, 1, 2, 2)
    assert plan(world, "b") == MigrationPlan()
    assert "does not exist" in migration(world.engine.view, ("default", "x"), "a", 9).problem
    world.declare(msgspec.structs.replace(world.gangs[KEY], elastic_min=0))
    world.step()
    assert "is not elastic" in plan(world, "a").problem


def test_rebalancing_moves_members_that_can_be_spared_and_no_others() -> None:
    world = running(2, 1, 2, 2)
    found = Rebalance(world.engine.view).free_gpus(2, 4, "a")
    assert [move.name for move in found.moves] == ["job-0", "job-1"]
    world = running(2, 2, 2, 2)
    found = Rebalance(world.engine.view).free_gpus(2, 4, "a")
    assert {stay.why for stay in found.staying} == {"its elastic gang has no member to spare"}
    invariants.check(world.engine)
