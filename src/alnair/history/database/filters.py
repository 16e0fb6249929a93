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
    _refuse_unknown(query, _KNOWN, "filter")
    state = query.get("state")
    if state is not None and state not in STATES:
        raise QueryError(f"state={state}: write one of {', '.join(STATES)}")
    return Filter(
        **{name: query[name] for name in _TEXTS if name in query},
        state=state,
        since=_time(query, "since", now),
        until=_time(query, "until", now),
        limit=_number(query, "limit", 100, 1, _MOST),
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
    _refuse_unknown(query, _EFFICIENCY, "part")
    said = query.get("by", daily.DIMENSIONS[0])
    by = next((one for one in daily.DIMENSIONS if one == said), None)
    if by is None:
        raise QueryError(f"by={said}: write one of {', '.join(daily.DIMENSIONS)}")
    worst = _number(query, "worst", 10, 0, _MOST_WORST)
    since = _time(query, "since", now)
    return efficiency.Request(by=by, since=since, worst=worst, namespace=query.get("namespace"))


def _refuse_unknown(query: Mapping[str, str], known: frozenset[str], noun: str) -> None:
    if unknown := sorted(set(query) - known):
        raise QueryError(f"{unknown[0]}: there is no such {noun}: {', '.join(sorted(known))}")


def _number(query: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    said = query.get(name, str(default))
    if not (said.isdecimal() and least <= int(said) <= most):
        raise QueryError(f"{name}={said}: write a number from {least} to {most}")
    return int(said)


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
