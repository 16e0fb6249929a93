"""Both sides of the shared pages: the C header and `alnair.node.vgpu.pages.abi` say the same."""

import ctypes
import re
import subprocess
from pathlib import Path

import pytest

from alnair.node.vgpu.pages import abi

HEADER = Path(__file__).resolve().parents[2] / "native" / "vgpu" / "abi.h"
STRUCTS = {
    "vg_device_limit": abi.DeviceLimit,
    "vg_loan": abi.Loan,
    "vg_limits": abi.Limits,
    "vg_calls": abi.Calls,
    "vg_slot_device": abi.SlotDevice,
    "vg_slot": abi.Slot,
    "vg_bucket": abi.Bucket,
    "vg_counters": abi.Counters,
    "vg_frame": abi.Frame,
}
#: What of it a tenant can write, as the page on isolation calls it.
WRITABLE = {
    "counters": abi.Counters,
    "bucket": abi.Bucket,
    "slot": abi.Slot,
    "slot device": abi.SlotDevice,
    "calls": abi.Calls,
}
CONSTANTS: dict[str, int] = {
    "VG_ABI": abi.ABI,
    "VG_LIMITS_MAGIC": abi.LIMITS_MAGIC,
    "VG_COUNTERS_MAGIC": abi.COUNTERS_MAGIC,
    "VG_FRAME_MAGIC": abi.FRAME_MAGIC,
    "VG_DEVICES": abi.DEVICES,
    "VG_SLOTS": abi.SLOTS,
    "VG_LEFT_MOST_NS": abi.LEFT_MOST_NS,
    "VG_CLASSES": abi.CLASSES,
    "VG_COUNTED": abi.COUNTED,
    "VG_CONTEXT_DEFAULT": abi.CONTEXT_DEFAULT,
    **{f"VG_STATE_{each.name}": each for each in abi.State},
    **{f"VG_{each.name}": each for each in abi.Flag},
    **{f"VG_CALL_{each.name}": each for each in abi.Call},
    **{f"VG_OP_{each.name}": each for each in abi.Operation},
    **{f"VG_REPLY_{each.name}": each for each in abi.Reply},
}


@pytest.fixture(scope="module")
def said_by_c(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Sizes, offsets and constants as a C compiler sees them."""
    folder = tmp_path_factory.mktemp("abi")
    lines = [f'P("{name}", {name});' for name in CONSTANTS]
    for name, kind in STRUCTS.items():
        lines.append(f'P("{name}", sizeof(struct {name}));')
        for field in kind._fields_:
            member = f"((struct {name} *)0)->{field[0]}"
            lines.append(f'P("{name}.{field[0]}", offsetof(struct {name}, {field[0]}));')
            lines.append(f'P("{name}.{field[0]} size", sizeof({member}));')
    program = "\n".join(
        (
            "#include <stddef.h>\n#include <stdio.h>",
            f'#include "{HEADER}"',
            '#define P(n, v) printf("%s=%llu\\n", n, (unsigned long long)(v))',
            "int main(void) {",
            *lines,
            'printf("%s", VG_FOLDER); }',
        )
    )
    (folder / "abi.c").write_text(program)
    build = ["gcc", "-std=gnu11", "-Wall", "-o", folder / "abi", folder / "abi.c"]
    subprocess.run(build, check=True)
    out = subprocess.run([folder / "abi"], check=True, capture_output=True, text=True).stdout
    *pairs, where = out.splitlines()
    assert where == abi.FOLDER
    return {name: int(value) for name, value in (pair.split("=") for pair in pairs)}


def test_every_constant_size_and_offset_is_the_same_on_both_sides(
    said_by_c: dict[str, int],
) -> None:
    said_here: dict[str, int] = {name: int(value) for name, value in CONSTANTS.items()}
    for name, kind in STRUCTS.items():
        said_here[name] = ctypes.sizeof(kind)
        for field in kind._fields_:
            placed = getattr(kind, field[0])
            said_here[f"{name}.{field[0]}"] = placed.offset
            said_here[f"{name}.{field[0]} size"] = placed.size
    assert said_here == said_by_c


def test_no_struct_or_constant_of_the_header_is_left_out() -> None:
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    assert set(re.findall(r"^struct (\w+) \{", text, re.MULTILINE)) == set(STRUCTS)
    named = set(re.findall(r"\bVG_[A-Z0-9_]+\b", text)) - {"VG_FOLDER"}
    assert named == set(CONSTANTS)
    for name, kind in STRUCTS.items():
        body = re.search(rf"struct {name} \{{(.*?)\}};", text, re.DOTALL)
        assert body
        members = re.findall(r"(\w+)(?:\[[^\]]*\])?\s*(?=[,;])", body[1])
        assert members == [field[0] for field in kind._fields_], name


def test_the_page_on_isolation_says_of_every_field_what_a_lie_in_it_gains() -> None:
    page = (HEADER.parents[2] / "docs" / "concepts" / "isolation.md").read_text()
    rows = re.findall(r"^\| ([a-z ]+) \| (`[^|]+) \|", page, re.MULTILINE)
    told = {(struct, field) for struct, fields in rows for field in re.findall(r"`(\w+)`", fields)}
    nested = {"bucket", "slot", "device", "calls"}
    there = {
        (name, field)
        for name, struct in WRITABLE.items()
        for field in (each[0] for each in struct._fields_)
        if not field.startswith(("padding", "reserved"))
        and (field not in nested or (name, field) == ("calls", "calls"))
    }
    assert told == there
