"""What keeps rebalancing small, as values: who may begin, what is remembered, what would undo."""

import msgspec
import pytest

from alnair.model.rebalancing import (
    PlannedMove,
    RebalanceBounds,
    RebalanceMemory,
    RebalancePlan,
    undone,
)

BOUNDS = RebalanceBounds(every=600, cool_down=3600)


def move(name: str, source: str = "a", target: str = "b", **more: object) -> PlannedMove:
    fields = {"namespace": "n", "name": name, "uid": name, "kind": f"ReplicaSet/{name}", **more}
    return msgspec.convert({**fields, "source": source, "target": target}, PlannedMove)


def plan(*moves: PlannedMove, at: float = 0.0, unit: str = "u") -> RebalancePlan:
    return RebalancePlan(
        unit=unit, name=unit, pod=("n", "p", "p"), gpus=4, at=at, nodes=("a",), moves=moves
    )


def stages(plan: RebalancePlan, *those: str) -> RebalancePlan:
    changed = (
        msgspec.structs.replace(one, stage=stage)
        for one, stage in zip(plan.moves, those, strict=True)
    )
    return msgspec.structs.replace(plan, moves=tuple(changed))


def test_no_more_moves_are_under_way_than_are_allowed_and_they_begin_in_their_order() -> None:
    three = plan(move("x"), move("y"), move("z"))
    assert three.next_move(1) == 0
    assert stages(three, "begun", "waits", "waits").next_move(1) is None
    assert stages(three, "begun", "waits", "waits").next_move(2) == 1
    assert stages(three, "begun", "begun", "waits").next_move(2) is None
    assert stages(three, "done", "gone", "waits").next_move(1) == 2
    assert stages(three, "done", "gone", "done").next_move(9) is None


def test_the_workers_of_a_job_that_migrates_are_one_move() -> None:
    job = {"job": "ElasticHorovodJob/j", "stage": "begun"}
    three = plan(move("x", **job), move("y", **job), move("z"))
    assert three.next_move(1) is None
    assert three.next_move(2) == 2


@pytest.mark.parametrize(
    "second",
    [
        pytest.param({"source": "c", "target": "a"}, id="it takes the room that the first leaves"),
        pytest.param({"gang": "n/g"}, id="they are of one gang"),
    ],
)
def test_a_move_waits_for_the_one_before_it(second: dict[str, str]) -> None:
    two = plan(move("x", gang="n/g"), move("y", **second))
    assert stages(two, "begun", "waits").next_move(5) is None
    assert stages(two, "done", "waits").next_move(5) == 1


@pytest.mark.parametrize("end", ["refused", "late"])
def test_after_a_move_that_failed_no_other_begins_and_those_under_way_are_waited_for(
    end: str,
) -> None:
    three = stages(plan(move("x"), move("y", "c"), move("z", "d")), end, "begun", "waits")
    assert three.next_move(5) is None
    assert not three.over
    assert three.cordoned == {"a", "c"}
    ended = stages(three, end, "done", "waits")
    assert ended.over
    assert ended.cordoned == set()
    assert ended.touched == {"a", "c", "d"}


def test_a_move_that_brings_a_pod_back_where_one_of_its_kind_left_is_found() -> None:
    there = stages(plan(move("x", "a", "b")), "done")
    back = move("x-again", "b", "a", kind="ReplicaSet/x")
    assert "n/x-again would go back to a" in undone([back], [there])
    assert undone([msgspec.structs.replace(back, kind="ReplicaSet/y")], [there]) == ""
    assert undone([msgspec.structs.replace(back, namespace="other")], [there]) == ""
    assert undone([msgspec.structs.replace(back, target="c")], [there]) == ""
    # What stayed has left nothing.
    assert undone([back], [stages(there, "refused")]) == ""


def test_plans_are_remembered_for_the_cool_down_and_the_last_one_for_ever() -> None:
    memory = RebalanceMemory(plan=stages(plan(move("x"), at=100.0), "done"))
    memory = memory.ended(BOUNDS, 200.0)
    assert memory.plan is None
    assert memory.planned_at() == 100.0
    memory = msgspec.structs.replace(memory, plan=stages(plan(move("y"), at=9000.0), "done"))
    memory = memory.ended(BOUNDS, 9100.0)
    assert [one.at for one in memory.past] == [9000.0]
    assert memory.ended(BOUNDS, 99_000.0).past == memory.past


def test_the_memory_stays_small_whatever_the_bounds() -> None:
    bounds = RebalanceBounds(every=1, moves=50, cool_down=1e9)
    memory = RebalanceMemory()
    for at in range(40):
        moves = tuple(move(f"{at}-{n}") for n in range(50))
        memory = msgspec.structs.replace(memory, plan=plan(*moves, at=float(at)))
        memory = memory.ended(bounds, float(at))
    assert sum(len(one.moves) for one in memory.past) <= 256
    assert len(msgspec.json.encode(memory)) < 100_000
    assert memory.past[-1].at == 39.0


def test_what_was_written_is_read_again_as_it_was() -> None:
    memory = RebalanceMemory(plan=plan(move("x", job="ElasticTorchJob/j", begun=1.5)))
    memory = msgspec.structs.replace(memory, past=(plan(move("y", gang="n/g"), at=3.0),))
    assert msgspec.json.decode(msgspec.json.encode(memory), type=RebalanceMemory) == memory
