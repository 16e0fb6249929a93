"""The history over HTTP, as JSON: /v1/history/jobs, and one job by its namespace, kind and name."""

import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from aiohttp import web
from sqlalchemy import Connection

from alnair.history.database import queries
from alnair.history.database.opening import HistoryError
from alnair.history.database.queries import STATES, Filter
from alnair.model import durations
from alnair.processes.controller.history.store import Store

JOBS: Final = "/v1/history/jobs"
_TEXTS: Final = ("namespace", "user", "kind", "name", "series", "scheduler")
_KNOWN: Final = frozenset((*_TEXTS, "state", "since", "until", "limit"))
_MOST: Final = 10_000


class QueryError(Exception):
    """A request cannot be answered as it is; says what to write."""


def add_history(app: web.Application, store: Store) -> None:
    """Serve the history."""

    async def listed(request: web.Request) -> web.Response:
        try:
            wanted = filter_of(request.query, time.time())
        except QueryError as error:
            return web.Response(status=400, text=str(error))
        return await _answer(store, lambda one: {"v": 1, "jobs": queries.jobs(one, wanted)})

    async def shown(request: web.Request) -> web.Response:
        who = request.match_info
        names = who["namespace"], who["kind"], who["name"]
        return await _answer(store, lambda one: queries.find(one, *names))

    app.router.add_get(JOBS, listed)
    app.router.add_get(f"{JOBS}/{{namespace}}/{{kind}}/{{name}}", shown)


async def _answer(store: Store, work: Callable[[Connection], object]) -> web.Response:
    try:
        found = await store.read(work)
    except HistoryError as error:
        return web.Response(status=503, text=f"the history cannot be read now: {error}")
    if found is None:
        return web.Response(status=404, text="there is no such job in the history")
    body = msgspec.json.encode(found)
    return web.Response(body=body, content_type="application/json")


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


def _time(query: Mapping[str, str], name: str, now: float) -> float | None:
    if name not in query:
        return None
    try:
        return durations.moment(query[name], now)
    except ValueError:
        raise QueryError(
            f"{name}={query[name]}: write 90s, 30m, 12h or 7d before now, or 2026-01-31T12:00:00Z"
        ) from None
