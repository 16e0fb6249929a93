"""Which jobs a request wants, in words: of a URL's query, or of options."""

from collections.abc import Mapping
from typing import Final

from alnair.history.database import daily, efficiency
from alnair.history.database.queries import STATES, Filter
from alnair.model import durations

_TEXTS: Final = ("namespace", "user", "kind", "name", "series", "scheduler")
_KNOWN: Final = frozenset((*_TEXTS, "state", "since", "until", "limit"))
_MOST: Final = 10_000


class QueryError(Exception):
    """A request cannot be answered as it is; says what to write."""


def filter_of(query: Mapping[str, str], now: float) -> Filter:
    """Return which jobs a request wants.

    Args:
        query: Of the request.
        now: Seconds since the epoch, from which `since=7d` counts.

    Raises:
        QueryError: A part of it is wrong.
    """
    if unknown := sorted(set(query) - _KNOWN):
        raise QueryError(f"{unknown[0]}: there is no such filter: {', '.join(sorted(_KNOWN))}")
    state = query.get("state")
    if state is not None and state not in STATES:
        raise QueryError(f"state={state}: write one of {', '.join(STATES)}")
    try:
        limit = int(query.get("limit", "100"))
    except ValueError:
        limit = 0
    if not 1 <= limit <= _MOST:
        raise QueryError(f"limit={query['limit']}: write a number from 1 to {_MOST}")
    return Filter(
        **{name: query[name] for name in _TEXTS if name in query},
        state=state,
        since=_time(query, "since", now),
        until=_time(query, "until", now),
        limit=limit,
    )


_EFFICIENCY: Final = frozenset(("by", "since", "namespace", "worst"))
_MOST_WORST: Final = 1000


def efficiency_of(query: Mapping[str, str], now: float) -> efficiency.Request:
    """Return which figures of efficiency a request wants.

    Args:
        query: Of the request.
        now: Seconds since the epoch, from which `since=7d` counts.

    Raises:
        QueryError: A part of it is wrong.
    """
    if unknown := sorted(set(query) - _EFFICIENCY):
        raise QueryError(f"{unknown[0]}: there is no such part: {', '.join(sorted(_EFFICIENCY))}")
    said = query.get("by", daily.DIMENSIONS[0])
    by = next((one for one in daily.DIMENSIONS if one == said), None)
    if by is None:
        raise QueryError(f"by={said}: write one of {', '.join(daily.DIMENSIONS)}")
    worst = query.get("worst", "10")
    if not worst.isdecimal() or int(worst) > _MOST_WORST:
        raise QueryError(f"worst={worst}: write a number from 0 to {_MOST_WORST}")
    since = _time(query, "since", now)
    return efficiency.Request(
        by=by, since=since, worst=int(worst), namespace=query.get("namespace")
    )


def _time(query: Mapping[str, str], name: str, now: float) -> float | None:
    if name not in query:
        return None
    try:
        return durations.moment(query[name], now)
    except ValueError:
        raise QueryError(
            f"{name}={query[name]}: write 90s, 30m, 12h, 7d or 2w before now, today, yesterday,"
            " or 2026-01-31T12:00:00Z"
        ) from None
