"""The order of tests: by stage, and in a lane those last that end its cluster."""

import pytest

from lanes import lane, place

NODE = "tests/integration/real_node/test_{}.py::test"


def test_whoever_takes_the_real_node_away_comes_after_all_who_use_it() -> None:
    churn = "tests/integration/local/test_real_node_churn.py::test"
    ordered = [churn, *map(NODE.format, ("slices", "upgrade", "node"))]
    backwards = [*reversed(ordered)]
    assert sorted(backwards, key=lambda one: place(one, parallel=True)) == ordered
    assert len({lane(one) for one in ordered}) == 1


@pytest.mark.parametrize("parallel", [True, False])
def test_stages_come_one_after_the_other_but_for_what_takes_longest(parallel: bool) -> None:
    stages = [f"tests/{one}/test_it.py::test" for one in ("unit", "native", "scenarios")]
    longest, other = "tests/integration/scheduler/test_gangs.py::test", NODE.format("slices")
    ordered = [longest, *stages, other] if parallel else [*stages, other, longest]
    backwards = [*reversed(ordered)]
    assert sorted(backwards, key=lambda one: place(one, parallel=parallel)) == ordered
