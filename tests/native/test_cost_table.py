"""Where prices of kernels are kept, and which launches are timed, without any GPU."""

import json
from typing import Any

import pytest

from native import build


@pytest.fixture(scope="module")
def found() -> Any:
    build.libraries()
    program = build.client("costs", "-D_GNU_SOURCE", "-I", str(build.LIBRARIES / "gen"))
    return json.loads(build.checked(program, environment={}))


def test_a_full_table_gives_the_places_of_kernels_that_are_not_launched_any_more(
    found: Any,
) -> None:
    """Programs with ever new shapes and graphs fill it."""
    assert found["early"] == 0, "a kernel lost its place that was launched just now"
    assert found["places"] == 64
    assert found["kept"] == 1, "a kernel in use lost its price"
    assert (found["owed"], found["learned"]) == (9_000_000 - 4000, 0)


def test_threads_that_launch_one_kernel_store_nothing_that_others_read(found: Any) -> None:
    assert found["stored"] == 0


def test_timed_launches_stand_for_all_however_few_each_thread_makes(found: Any) -> None:
    """200,000 of 5 us, of which about every eightieth is timed: by two threads, and by 20,000."""
    assert found["by_few"] == pytest.approx(200_000, rel=0.01)
    assert found["by_many"] == pytest.approx(200_000, rel=0.1)
    assert found["few"] == pytest.approx(found["many"], rel=0.15)
