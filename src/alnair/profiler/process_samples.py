"""Which of the driver's rows on the use of processes can be believed, and what follows from them.

`nvmlDeviceGetProcessUtilization` has been seen to tell again what it had told, of processes long
gone, of none at all, of other namespaces, of the future, and of billions of percent; and its
figures may add up to more than there is. So a row counts only if nothing speaks against it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

#: Microseconds for which a row may be ahead of our clock.
AHEAD_US: Final = 1_000_000
#: Microseconds by which a process may seem younger than its first row: the kernel counts in ticks.
_TICK_US: Final = 20_000


class Row(NamedTuple):
    """What the driver says of a process: microseconds since the epoch, and percent."""

    pid: int
    stamp_us: int
    sm: float
    memory: float
    #: The largest of its other figures, such as that of the decoder.
    others: float = 0.0


#: pid → (percent of compute time, percent of memory time).
Use = dict[int, tuple[float, float]]


class Believed(msgspec.Struct, frozen=True):
    """What is left of the rows.

    Attributes:
        newest: The latest stamp so far, for the next question.
        use: As the driver says.
    """

    newest: int
    use: Use


def asked_since(newest: int, now_us: int, period_us: int) -> int:
    """Return since when to ask, so that nothing is told twice, nor anything of long ago.

    Args:
        newest: The latest stamp that was told; 0 at first.
        now_us: Microseconds since the epoch.
        period_us: What counts as now at the first question, and after a clock was set back.
    """
    return newest if 0 < newest <= now_us + AHEAD_US else now_us - period_us


def believed(
    rows: Iterable[Row],
    *,
    since: int,
    now_us: int,
    born_us: Callable[[int], int | None],
) -> Believed:
    """Sort out the rows of one GPU.

    Args:
        rows: As the driver gave them.
        since: What it was asked for.
        now_us: Microseconds since the epoch.
        born_us: When the process that now has a pid began; None: there is none, or it has ended.
    """
    newest: dict[int, Row] = {}
    for row in rows:
        if not since < row.stamp_us <= now_us + AHEAD_US:
            continue
        if row.pid <= 0 or max(row.sm, row.memory, row.others) > 100:
            continue
        if row.pid not in newest or newest[row.pid].stamp_us < row.stamp_us:
            newest[row.pid] = row
    use: Use = {}
    for pid, row in newest.items():
        born = born_us(pid)
        if born is None or row.stamp_us < born - _TICK_US:
            continue  # it has ended; and maybe another one has its pid by now
        use[pid] = row.sm, row.memory
    latest = max((row.stamp_us for row in newest.values()), default=since)
    return Believed(latest, use)


def mean_of(answers: Sequence[tuple[float, Use]]) -> Use:
    """Return what each process used over several answers of the driver.

    It takes the mean of a process over the samples in which it ran. Asked as often as it samples,
    it tells of the others, too: in an answer that does not name a process, that did nothing.

    Args:
        answers: How long each one was, and what the processes used in it.
    """
    whole = sum(length for length, _ in answers)
    found: Use = {}
    for length, use in answers:
        for pid, (sm, memory) in use.items():
            before = found.get(pid, (0.0, 0.0))
            found[pid] = before[0] + sm * length / whole, before[1] + memory * length / whole
    return found


def within(parts: Mapping[int, float], whole: float | None) -> dict[int, float]:
    """Return the parts of processes so that together they are no more than the whole.

    The driver takes the mean of a process over the samples in which it ran, so that two that take
    turns can both have nearly all. Each one's share is its part of the sum.

    Args:
        parts: pid → percent.
        whole: Percent of the GPU, over the same time; None if not known.
    """
    limit = 100.0 if whole is None else min(whole, 100.0)
    total = sum(parts.values())
    if total <= limit:
        return dict(parts)
    return {pid: part * limit / total for pid, part in parts.items()}
