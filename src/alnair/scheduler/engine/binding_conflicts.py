"""Crossings: another scheduler and we gave the same room away at the same moment.

The API server checks no resources at binding, so that can happen. The other scheduler could see
what we had bound earlier; so only recent pods of ours can have crossed, and of these the newest go,
as many as needed and no more.
"""

from collections.abc import Container
from typing import Final

from alnair.scheduler.state.accounts import Accounts, Record, State

#: A pod of ours placed so recently may have crossed with another scheduler's (seconds).
CROSSING_SECONDS: Final = 10.0


def crossed(accounts: Accounts, row: int, ours: Container[str], now: float) -> list[Record]:
    """Return our pods that must leave the row, newest first.

    Args:
        accounts: the books.
        row: of a node on which a pod has appeared.
        ours: the scheduler names that we answer for.
        now: seconds since the epoch.
    """
    on_row = list(accounts.on_row.get(row, {}).values())
    if not on_row or not accounts.overcommitted(row):
        return []
    theirs = [r for r in on_row if r.pod.scheduler not in ours and not _leaving(r)]
    going = [r for r in on_row if _leaving(r)]
    if not accounts.to_relieve(row, theirs, going):
        return []  # they take nothing of it: the node has become smaller
    recent = [
        r
        for r in reversed(on_row)
        if r.pod.scheduler in ours
        and not _leaving(r)
        and (r.state is State.ASSUMED or now - r.placed_at < CROSSING_SECONDS)
    ]
    recent.sort(key=lambda r: -r.placed_at)
    return accounts.to_relieve(row, recent, going)


def _leaving(record: Record) -> bool:
    return bool(record.evicting) or record.pod.deleting
