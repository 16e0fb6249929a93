"""The test folder of a container has the layout that native/vgpu/abi.h declares."""

import subprocess
import uuid
from pathlib import Path

from native import build
from native.container import SOFT, Container, Counters, DeviceLimit, Limits, Slot, SlotDevice

STRUCTURES = {
    "vg_limits": Limits,
    "vg_device_limit": DeviceLimit,
    "vg_counters": Counters,
    "vg_slot": Slot,
    "vg_slot_device": SlotDevice,
}


def test_every_field_lies_where_the_header_puts_it(tmp_path: Path) -> None:
    fields = [(name, field) for name, its in STRUCTURES.items() for field, *_ in its._fields_]
    lines = [f"_Static_assert(offsetof(struct {name}, {field}) == " for name, field in fields]
    offsets = [getattr(STRUCTURES[name], field).offset for name, field in fields]
    asserts = [f'{line}{offset}, "");' for line, offset in zip(lines, offsets, strict=True)]
    source = tmp_path / "offsets.c"
    source.write_text("\n".join(["#include <stddef.h>", '#include "abi.h"', *asserts, ""]))
    header = build.ROOT / "native" / "vgpu"
    subprocess.run(["cc", "-fsyntax-only", "-I", str(header), str(source)], check=True)


def test_a_change_is_seen_in_the_file_and_leaves_an_even_sequence() -> None:
    with Container(uuid.uuid4(), memory_limit=1 << 30) as container:
        before = container.limits.sequence
        container.change(compute_percent=40, flags=SOFT)
        raw = (container.folder / "limits").read_bytes()
        page = Limits.from_buffer_copy(raw)
        row = page.device[0]
        assert (len(raw), page.n_devices, page.sequence) == (4096, 1, before + 2)
        assert (row.memory_limit, row.compute_percent, row.flags) == (1 << 30, 40, SOFT)
        assert (container.folder / "counters").stat().st_size == 257 * 4096
        assert container.slots() == []
