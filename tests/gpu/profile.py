"""What a run leaves behind: a results file, and a profile that makes the fake like the GPU."""

import re
from pathlib import Path
from typing import Any

import msgspec

from gpu.bench import Bench
from gpu.machine import around
from gpu.place import about
from gpu.report import Row, counted


def document(today: str, bench: Bench, rows: list[Row], took: float) -> dict[str, Any]:
    """All that is to be sent to us: the machine, its constants, the rows."""
    machine = bench.machine
    return {
        "date": today,
        "machine": machine.name,
        "model": machine.model,
        "driver": machine.driver,
        "is_fake": machine.is_fake,
        "nvml_processes": machine.nvml.way,
        "server": bench.tenants.agent is not None,
        "around": around(),
        "built_from": about(),
        "scale": bench.scale,
        "seconds": round(took, 1),
        "constants": {**bench.constants, "context_bytes": bench.context},
        **counted(rows),
        "rows": rows,
    }


def named(model: str, today: str, *, is_fake: bool) -> str:
    """The name of files about this hardware and day."""
    kind = "fake-" if is_fake else ""
    return f"{kind}{re.sub(r'[^a-z0-9]+', '-', model.lower()).strip('-')}-{today}"


def written(folder: Path, today: str, bench: Bench, found: dict[str, Any]) -> list[Path]:
    """Writes results-HARDWARE-DATE.json, and of a GPU profile-HARDWARE-DATE, into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    name = named(bench.machine.model, today, is_fake=bench.machine.is_fake)
    results = folder / f"results-{name}.json"
    results.write_bytes(msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    if bench.machine.is_fake:  # a profile of the fake would say "measured", which it is not
        return [results]
    profile = folder / f"profile-{name}"
    profile.write_text(profile_text(today, bench))
    return [results, profile]


def profile_text(today: str, bench: Bench) -> str:
    """A profile in the format of native/fakegpu/profiles, with what was measured."""
    found = bench.constants
    lines = [
        f"# Measured on {bench.machine.name}, {today}, by make test-gpu.",
        f"# The smallest allocation took {found['block']} bytes.",
        f"name {found['name']}",
        f"memory_bytes {found['total']}",
        f"nvml_bytes {bench.machine.total}",
        f"sm_count {found['sms']}",
        f"context_bytes {bench.context}",
        f"launch_ns {found['launch_ns']:.0f}",
        f"event_ns {found['event_pair_ns'] / 2:.0f}",
    ]
    return "\n".join(lines) + "\n"
