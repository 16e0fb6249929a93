"""What a running scheduler takes over of a changed configuration, and what waits for a restart."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from alnair.configuration.scheduler_file import Configuration

#: Taken over by a running scheduler. charts/alnair restarts it for all others, by the same names.
RELOADED: Final = ("backfill", "logging", "pairs", "profiles", "seed")


def taken_over(running: Configuration, wanted: Configuration) -> tuple[Configuration, list[str]]:
    """Return what to go on with, and the fields of `wanted` that need a restart.

    Args:
        running: What is in force.
        wanted: What shall be; checked.

    Returns:
        The configuration, and paths in the spelling of the file, such as `serving.port`.
    """
    changes = {field: getattr(wanted, field) for field in RELOADED}
    next_one = msgspec.structs.replace(running, **changes)
    before, after = (msgspec.to_builtins(each) for each in (next_one, wanted))
    return next_one, list(_differing(before, after, ""))


def _differing(before: Any, after: Any, path: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before:
            yield from _differing(before[name], after[name], f"{path}.{name}" if path else name)
    elif before != after:
        yield path
