"""What a run on a real GPU leaves behind: results, and a profile that makes the fake like it."""

from pathlib import Path

import msgspec

from gpu.bench import Bench
from gpu.report import Row


def written(folder: Path, today: str, bench: Bench, rows: list[Row]) -> None:
    """Writes results-DATE.json and profile-DATE into the folder, and says where."""
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / f"results-{today}.json"
    document = {
        "machine": bench.machine.name,
        "date": today,
        "constants": bench.constants,
        "rows": rows,
    }
    results.write_bytes(msgspec.json.format(msgspec.json.encode(document)))
    profile = folder / f"profile-{today}"
    profile.write_text(profile_text(today, bench))
    print(f"written: {results} and {profile} (to keep it: copy it to native/fakegpu/profiles)")


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
