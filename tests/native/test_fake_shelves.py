"""The fake GPU's shelves: what may include what, and no circles (native/fakegpu/README.md)."""

import re
import subprocess
from graphlib import CycleError, TopologicalSorter
from itertools import chain
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


def test_no_circle_of_files_that_call_each_other() -> None:
    folder = build.libraries() / "fakegpu"
    uses: dict[str, set[str]] = {}
    where: dict[str, str] = {}
    for path in chain.from_iterable((folder / shelf).glob("*.o") for shelf in SHELVES):
        if not (FAKE / path.relative_to(folder).with_suffix(".c")).exists():
            continue  # of a file that is no more
        name = str(path.relative_to(folder).with_suffix(""))
        uses[name], defined = _symbols(path)
        where.update(dict.fromkeys(defined, name))
    arrows = {
        name: {where[symbol] for symbol in symbols if symbol in where} - {name}
        for name, symbols in uses.items()
    }
    assert len(arrows) > len(SHELVES)
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as circle:
        pytest.fail(f"these files call each other in a circle: {circle.args[1]}")


def _symbols(path: Path) -> tuple[set[str], set[str]]:
    """Symbols that an object uses from elsewhere, and those that it defines for others."""
    listed = subprocess.run(
        ["nm", "-P", str(path)], capture_output=True, text=True, check=True
    ).stdout
    kinds = [line.split()[:2] for line in listed.splitlines()]
    used = {name for name, kind in kinds if kind == "U"}
    return used, {name for name, kind in kinds if kind in set("TDBRV")}
