"""The order of tests: by stage, and in a lane those last that end its cluster."""

from types import SimpleNamespace

import pytest

from conftest import pytest_runtest_protocol
from lanes import Took, lane, longest, place

NODE = "tests/integration/real_node/test_{}.py::test"


def test_whoever_takes_the_real_node_away_comes_after_all_who_use_it() -> None:
    ordered = [*map(NODE.format, ("slices", "upgrade", "node"))]
    backwards = [*reversed(ordered)]
    assert sorted(backwards, key=lambda one: place(one, parallel=True)) == ordered
    assert len({lane(one) for one in ordered}) == 1


def test_alnair_as_pods_has_a_process_of_its_own_where_its_images_were_made() -> None:
    images = "tests/integration/images/test_images.py::test"
    ordered = [images, *map(NODE.format, ("upgrade_from_before", "installed"))]
    backwards = [*reversed(ordered)]
    assert sorted(backwards, key=lambda one: place(one, parallel=True)) == ordered
    assert len({lane(one) for one in (*ordered, NODE.format("installed_life"))}) == 1
    assert lane(images) != lane(NODE.format("slices"))


@pytest.mark.parametrize("parallel", [True, False])
def test_stages_come_one_after_the_other_but_for_what_takes_longest(parallel: bool) -> None:
    stages = [f"tests/{one}/test_it.py::test" for one in ("unit", "native", "scenarios")]
    first = [NODE.format("slices"), "tests/integration/scheduler/test_gangs.py::test"]
    long, other = NODE.format("installed"), "tests/integration/demo/test_demo.py::test"
    unit, *later = stages
    ordered = (
        [*first, unit, long, *later, other]
        if parallel
        else [*stages, long, first[0], other, first[1]]
    )
    backwards = [*reversed(ordered)]
    assert sorted(backwards, key=lambda one: place(one, parallel=parallel)) == ordered


def test_the_longest_lanes_are_told_with_what_each_process_did() -> None:
    took = [
        Took(NODE.format("slices"), "gw0", 100.0, 102.0),
        Took(NODE.format("node"), "gw0", 103.0, 104.4),
        Took("tests/unit/test_it.py::test", "gw1", 100.0, 101.0),
        Took("tests/unit/test_it.py::test_another", "gw1", 101.0, 103.0),
        Took("tests/unit/test_small.py::test", "gw1", 106.0, 106.1),
    ]
    assert longest(took, 2) == [
        "     3s integration/real_node (gw0, from 0s to 4s)",
        "     3s unit/test_it.py (gw1, from 0s to 3s)",
        "in all: gw0 3s, gw1 3s",
        "done: gw0 at 4s, gw1 at 6s",
    ]


@pytest.mark.parametrize(
    ("failing", "ran"),
    [
        # What is long comes first here: the stages before its own are run all the same.
        ("integration", ["integration", "unit", "unit", "native"]),
        ("unit", ["integration", "unit", "unit"]),
    ],
)
def test_a_stage_with_failures_ends_those_after_it_only(failing: str, ran: list[str]) -> None:
    stages = ["integration", "unit", "unit", "native"]
    session = SimpleNamespace(testsfailed=0, shouldstop=False)
    config = SimpleNamespace(stash=pytest.Stash())
    ids = [f"tests/{name}/test_{i}.py::test" for i, name in enumerate(stages)]
    items = [SimpleNamespace(nodeid=one, session=session, config=config) for one in ids]
    done = []
    for item, name, nextitem in zip(items, stages, [*items[1:], None], strict=True):
        done.append(name)
        steps = pytest_runtest_protocol(item, nextitem)
        next(steps)
        session.testsfailed += name == failing
        with pytest.raises(StopIteration):
            next(steps)
        if session.shouldstop:
            break
    assert done == ran
