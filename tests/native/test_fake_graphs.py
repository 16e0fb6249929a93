"""The fake driver's graphs: capture, execution, update, and their memory."""

from collections.abc import Iterator

import pytest

from native.fake import Fake
from native.timing import PLAIN, script


@pytest.fixture
def quiet() -> Iterator[Fake]:
    """One GPU whose costs are plain numbers."""
    with Fake(**PLAIN) as fake:
        yield fake


def test_a_capture_runs_nothing_and_its_graph_runs_all(quiet: Fake) -> None:
    lines = script(
        quiet,
        """
        stream s; stream t; event fork; event joined; capture s; launch s ns_100000; record
        fork s; wait t fork; launch t ns_100000 3; record joined t; launch s ns_100000; wait
        s joined; launch s ns_100000; end s g; nodes g; ? query s; time; instantiate g x;
        glaunch x s; glaunch x s; sync s; time
        """,
    )
    assert lines[:2] == ["6", "0"]
    assert int(lines[2]) < 50_000
    assert int(lines[3]) == pytest.approx(1_200_000 + int(lines[2]), rel=0.03)
    assert quiet.kernels() == 12


def test_captures_refuse_what_they_cannot_hold(quiet: Fake) -> None:
    lines = script(
        quiet,
        """
        stream s; stream t; event e; ? capture 0; capture s; ? sync s; ? launch s ns_1; ?
        end s g; capture s; ? malloc; mode 2; ? malloc; ? end s g; mode 0; capture s; ?
        launch 0 ns_1; ? end s g; capture s; launch s ns_1; record e s; wait t e; launch t
        ns_1; ? end s g; record e t; capture s; ? wait s e; ? end s g; ? end s g
        """,  # of outside
    )
    assert lines == [
        "900",
        "900",
        "901",
        "901",
        "900",
        "0",
        "901",
        "906",
        "901",
        "904",
        "905",
        "901",
        "401",
    ]


def test_an_executable_graph_is_updated_only_by_its_like(quiet: Fake) -> None:
    lines = script(
        quiet,
        """
        stream s; capture s; launch s ns_100000 2; end s g; capture s; launch s ns_500000 2;
        end s h; capture s; launch s ns_1 3; end s other; instantiate g x; ? update x other;
        ? update x h; glaunch x s; sync s
        """,
    )
    assert lines == ["910", "0"]
    assert quiet.work_ns() == 1_000_000


def test_graphs_take_memory_when_they_are_launched_and_keep_it(quiet: Fake) -> None:
    lines = script(
        quiet,
        """
        stream s; used; capture s; alloc m s 100000000; launch s ns_1000; free m s; end s g;
        nodes g; instantiate g x; used; glaunch x s; sync s; used; glaunch x s; sync s;
        trim; used
        """,
    )
    before, nodes, instantiated, launched, trimmed = map(int, lines)
    assert nodes == 3
    assert instantiated == before == trimmed
    assert 100_000_000 <= launched - before <= 140_000_000


def test_addresses_of_graphs_last_as_long_as_something_can_mean_them(quiet: Fake) -> None:
    lines = script(
        quiet,
        """
        stream s; capture s; alloc m s 1000; end s g; instantiate g x; ? free m s; glaunch x s;
        ? glaunch x s; gdestroy g x; free m s; ? free m s; sync s; trim
        """,
    )
    # Freed before it is there, launched again though it is, freed, and freed once more.
    assert lines == ["1", "1", "1"]
    cycle = "capture s; alloc m s 100000000; free m s; end s g; instantiate g x; glaunch x s;"
    lines = script(quiet, "stream s; used;" + (cycle + "sync s; gdestroy g x;") * 50 + "trim; used")
    assert lines[0] == lines[1]
