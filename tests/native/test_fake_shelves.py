"""The fake GPU's shelves: what may include what, and no circles (native/fakegpu/README.md)."""

import re
import subprocess
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from native import build

FAKE = build.ROOT / "native" / "fakegpu"
#: As README.md lists them: each includes only from itself and from those before it.
SHELVES = re.findall(r"^\| `([a-z_]+)` \|", (FAKE / "README.md").read_text(), re.MULTILINE)


def test_readme_lists_every_shelf() -> None:
    assert sorted(SHELVES) == sorted({path.parent.name for path in FAKE.glob("*/*.c")})


@pytest.mark.parametrize("shelf", SHELVES)
def test_a_shelf_includes_only_shelves_above_it(shelf: str) -> None:
    allowed = SHELVES[: SHELVES.index(shelf) + 1]
    wrong = [
        f"{path.relative_to(FAKE)} includes {header}/"
        for path in sorted((FAKE / shelf).glob("*.[ch]"))
        for header in re.findall(r'#include "(\w+)/', path.read_text())
        if header not in allowed
    ]
    assert not wrong


@pytest.fixture(scope="module")
def arrows() -> dict[str, set[str]]:
    """Which files each file calls, or whose variables it uses, by their objects."""
    folder = build.libraries() / "fakegpu"
    uses: dict[str, set[str]] = {}
    where: dict[str, str] = {}
    for shelf in SHELVES:
        for path in sorted((FAKE / shelf).glob("*.c")):
            name = f"{shelf}/{path.stem}"
            uses[name], defined = _symbols(folder / f"{name}.o")
            where.update(dict.fromkeys(defined, name))
    return {name: {where[symbol] for symbol in uses[name] & where.keys()} for name in uses}


def test_a_file_calls_only_shelves_above_it(arrows: dict[str, set[str]]) -> None:
    depth = {name: SHELVES.index(name.split("/")[0]) for name in arrows}
    wrong = [f"{a} calls {b}" for a in arrows for b in arrows[a] if depth[b] > depth[a]]
    assert any(arrows.values())
    assert not wrong


def test_no_circle_of_files_that_call_each_other(arrows: dict[str, set[str]]) -> None:
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as circle:
        pytest.fail(f"these files call each other in a circle: {circle.args[1]}")


def _symbols(path: Path) -> tuple[set[str], set[str]]:
    """Symbols that an object uses from elsewhere, and those that it defines for others."""
    listed = subprocess.run(["nm", "-P", path], capture_output=True, text=True, check=True).stdout
    kinds = [line.split()[:2] for line in listed.splitlines()]
    used = {name for name, kind in kinds if kind == "U"}
    return used, {name for name, kind in kinds if kind in set("TDBRV")}
