"""GPUs that somebody holds and nobody uses."""

from collections.abc import Iterable

#: Percent up to which a GPU counts as idle: a driver's own housekeeping shows as 1.
IDLE_PERCENT = 1.0


def idle_seconds(samples: Iterable[tuple[float, float | None]], now: float) -> float | None:
    """Return for how long a GPU that is held has been idle without interruption; 0 if it is not.

    Args:
        samples: Time and utilisation in percent, the oldest first, since it was given away; None
            where it could not be measured, which is no sign of idleness.
        now: On the same clock.

    Returns:
        Seconds; None where nothing was measured.
    """
    begin: float | None = None
    measured = False
    for at, util in samples:
        if util is None:
            begin = None
            continue
        measured = True
        if util > IDLE_PERCENT:
            begin = None
        elif begin is None:
            begin = at
    if not measured:
        return None
    return 0.0 if begin is None else max(0.0, now - begin)


def is_wasted(samples: Iterable[tuple[float, float | None]], now: float, minutes: float) -> bool:
    """Tell whether a GPU that is held has been idle for so many minutes, up to now."""
    idle = idle_seconds(samples, now)
    return idle is not None and idle >= 60 * minutes
