"""Where prices of kernels are kept: programs with ever new shapes and graphs fill it."""

import json

from native import build


def test_a_full_table_gives_the_places_of_kernels_that_are_not_launched_any_more() -> None:
    build.libraries()
    program = build.client("costs", "-D_GNU_SOURCE", "-I", str(build.LIBRARIES / "gen"))
    found = json.loads(build.checked(program, environment={}))
    assert found["early"] == 0, "a kernel lost its place that was launched just now"
    assert found["places"] == 64
    assert found["kept"] == 1, "a kernel in use lost its price"
    assert (found["owed"], found["learned"]) == (9_000_000 - 4000, 0)
