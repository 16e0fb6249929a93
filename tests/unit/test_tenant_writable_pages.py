"""Every field that a tenant can write has its row in docs/concepts/isolation.md."""

import ctypes
from pathlib import Path

import pytest

from alnair.node.vgpu.pages import abi

PAGE = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "isolation.md"
STRUCTS: dict[str, type[ctypes.Structure]] = {
    "counters": abi.Counters,
    "bucket": abi.Bucket,
    "slot": abi.Slot,
    "slot device": abi.SlotDevice,
    "calls": abi.Calls,
}
#: What is made of other structs, which have rows of their own.
MADE_OF = {"bucket", "slot", "calls", "device"}


def rows() -> dict[tuple[str, str], list[str]]:
    """(struct, field) → the other cells, of the table of what a tenant can write."""
    text = PAGE.read_text().partition("## What a tenant can write")[2].partition("\n## ")[0]
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 5 and cells[0] in STRUCTS:
            for field in cells[1].split(","):
                found[cells[0], field.strip().strip("`")] = cells[2:]
    return found


@pytest.mark.parametrize("name", STRUCTS)
def test_every_field_that_a_tenant_can_write_has_its_row(name: str) -> None:
    is_part = name == "counters" or name == "slot"
    there = {
        field[0]
        for field in STRUCTS[name]._fields_
        if not field[0].startswith(("reserved", "padding"))
        and not (is_part and field[0] in MADE_OF)
    }
    told = {field for struct, field in rows() if struct == name}
    assert told == there


def test_every_row_says_who_writes_what_a_lie_gains_and_what_bounds_it() -> None:
    assert all(all(cells) for cells in rows().values())
