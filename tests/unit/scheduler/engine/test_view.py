"""What is tried in an experiment leaves no trace, and a view says what the engine knows."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from alnair.model import names
from alnair.model.action import Evict
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.queue.unit import Place
from alnair.scheduler.state.accounts import Accounts, Record, State
from kit import invariants, make
from kit.world import World

HIGH, LOW = 1000, 0


def books(engine: Engine) -> dict[str, Any]:
    """All that an experiment could leave behind, as values."""
    accounts: Accounts = engine._accounts
    columns, devices = accounts.columns, accounts.devices
    kept = engine.view._context.evaluations._kept
    return {
        "free": columns.free[:, : columns.n].tolist(),
        "scored": columns.scored[:, : columns.n].tolist(),
        "memory": devices.slice_memory[:, : columns.n].tolist(),
        "compute": devices.compute_free[:, : columns.n].tolist(),
        "hard": devices.hard_free[:, : columns.n].tolist(),
        "whole": devices.whole_free[: columns.n].tolist(),
        "on_row": {row: list(pods) for row, pods in accounts.on_row.items() if pods},
        "records": {
            uid: (r.state, r.node, r.row, r.bookings, r.message, r.refused_by)
            for uid, r in accounts.records.items()
        },
        "queue": [(u.key, u.place, u.attempts, list(u.pods)) for u in engine.view.units()],
        "ranks": {key: e.rank.tolist() for key, e in kept.items()},
    }


def busy() -> World:
    """Three nodes of 4 GPUs, two of which are free, and a gang that waits for more."""
    world = World(*(make.node(f"n{i}", cpu=64000, gpus=4, gpu_memory=81920) for i in range(3)))
    world.create(*(make.pod(f"run{i}", make.spec(whole=1, cpu=100)) for i in range(10)))
    world.settle()
    world.declare(make.gang("g", 2))
    world.create(*make.members("g", 2, make.spec(whole=4)))
    world.settle()
    return world


def record(world: World, name: str) -> Record:
    return world.engine.view.pods[world.pod(name).uid]


@pytest.fixture
def world() -> Iterator[World]:
    made = busy()
    for evaluation in made.engine.view._context.evaluations._kept.values():
        evaluation.refresh()  # a rank may wait for the next question, and that is no trace
    before = books(made.engine)
    yield made
    assert books(made.engine) == before
    invariants.check(made.engine)
    invariants.check_evaluations(made.engine)


def test_pods_that_are_placed_and_lifted_in_an_attempt_are_as_before_afterwards(
    world: World,
) -> None:
    view = world.engine.view
    new, old = make.pod("new", make.spec(whole=2, cpu=500)), record(world, "run0")
    with view.experiment(world.now) as experiment:
        for _ in range(2):
            with experiment.attempt() as (statement, lifted):
                lifted.lift(old)
                copy = Record(new)
                assert statement.place(copy, experiment.profiles[names.SCHEDULER]) is None
                assert copy.state is State.ASSUMED
                assert copy.pod.uid in view.on_row(copy.row)
                assert old.row == -1
            assert (copy.row, copy.state) == (-1, State.PENDING)
            assert old.row >= 0


def test_an_attempt_that_ends_in_an_error_leaves_no_trace_either(world: World) -> None:
    def fail() -> None:
        with (
            world.engine.view.experiment() as experiment,
            experiment.attempt() as (statement, lifted),
        ):
            lifted.lift(record(world, "run3"))
            copy = Record(make.pod("new", make.spec(whole=1)))
            assert statement.place(copy, experiment.profiles[names.SCHEDULER]) is None
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


def test_a_gang_that_is_tried_is_off_the_books_afterwards(world: World) -> None:
    view = world.engine.view
    state = view.gang_of(record(world, "g-0"))
    assert state is not None
    copies = [Record(make.pod(f"copy{i}", make.spec(whole=1), group="g")) for i in range(2)]
    with (
        view.experiment(world.now) as experiment,
        experiment.gang_attempt(state, copies) as placement,
    ):
        assert not placement.place(2, {}).refusal
        assert all(copy.row >= 0 for copy in copies)
    assert all(copy.row < 0 for copy in copies)


def test_the_engines_own_evaluations_do_not_see_an_experiment(world: World) -> None:
    view = world.engine.view
    spec, profile = make.spec(whole=1), view.profiles[names.SCHEDULER]
    kept, classes = view.evaluate(spec, profile), view.classes
    before = kept.rank.copy()
    with view.experiment() as experiment:
        tried = experiment.evaluate(spec, profile)
        assert tried is not kept
        tried.rank[:] = -1  # as a statement does with a node whose devices do not suit
    assert view.classes == classes
    assert np.array_equal(view.evaluate(spec, profile).rank, before)


def test_room_that_is_held_counts_as_taken_only_within_the_experiment() -> None:
    world = World(make.node("n", cpu=4000))
    world.create(make.pod("low", make.spec(cpu=4000), priority=LOW))
    world.settle()
    world.create(make.pod("high", make.spec(cpu=4000), priority=HIGH))
    actions = world.step()
    assert any(isinstance(a, Evict) for a in actions)
    view = world.engine.view
    assert view.nominated_node(record(world, "high")) == "n"
    other = Record(make.pod("other", make.spec(cpu=100), priority=LOW))
    before = books(world.engine)
    with view.experiment(world.now, [other]) as experiment:
        held = books(world.engine)
        assert held["free"] != before["free"]
        with experiment.attempt() as (_, lifted):
            lifted.lift(record(world, "low"))
    assert books(world.engine) == before
    with view.experiment(world.now, [record(world, "high")]):
        assert books(world.engine)["free"] == before["free"], "its own room is free to it"


def test_a_view_counts_the_queue_and_follows_the_engine() -> None:
    world = World()
    view = world.engine.view
    assert (len(view.pods), world.engine.waiting) == (0, 0)
    world.create(make.pod("p"))
    world.settle()
    assert [r.pod.name for r in view.pods.values()] == ["p"]
    assert (view.count(Place.PARKED), world.engine.waiting) == (1, 1)
    unit = view.unit_of(record(world, "p"))
    assert unit is not None
    assert list(view.units()) == [unit]
    assert (view.reservation, view.quota_refusal(record(world, "p"))) == (None, "")


def test_all_else_of_an_engine_is_its_own() -> None:
    assert {name for name in vars(Engine([])) if name[0] != "_"} == {"counters", "view"}
