"""What people are told of moves."""

import pytest

from alnair.model.rebalancing import PlannedMove, RebalancePlan, Stage
from alnair.processes.controller.rebalancing import words


def move(name: str, stage: Stage = "begun", job: str = "") -> PlannedMove:
    return PlannedMove(
        namespace="n", name=name, uid=name, kind="k", source="a", target="b", stage=stage, job=job
    )


def plan(*moves: PlannedMove, asks: str = "") -> RebalancePlan:
    return RebalancePlan(
        unit="u",
        name="pod n/p",
        pod=("n", "p", "p"),
        gpus=1,
        at=0.0,
        nodes=("a",),
        moves=moves,
        asks=asks,
    )


def test_who_waits_for_a_slice_is_not_said_to_get_a_gpu() -> None:
    slices = plan(move("x"), asks="a slice of 8192 MiB and 30 % of a GPU")
    so = "so that pod n/p gets a slice of 8192 MiB and 30 % of a GPU on a"
    assert words.planned(slices) == f"1 pod moves, {so}"
    assert words.begun(slices, slices.moves[0]) == (
        f"off a, {so}: it is evicted, and b has room for it"
    )
    # A plan that an earlier version has written does not say what is asked for.
    assert "gets 1 GPU on a" in words.planned(plan(move("x"), move("y")))


@pytest.mark.parametrize(
    ("failed", "seconds", "expected"),
    [
        (move("x", "refused"), 0.5, "it may not leave a any more, and stays"),
        (move("x", "refused"), 60.0, "it could not be evicted from a in 1m, and stays"),
        (move("x", "refused", "J/j"), 60.0, "J/j has not left a in 1m, and stays"),
        (move("x", "late"), 60.0, "it left a, and in 1m nothing came to work in its place"),
    ],
)
def test_what_became_of_a_move_is_told(failed: PlannedMove, seconds: float, expected: str) -> None:
    assert words.failed(failed, seconds) == f"{expected}; further moves are given up"
