"""The history over HTTP, as JSON: jobs, one by namespace, kind and name, and who wasted GPUs."""

import time
from collections.abc import Callable
from typing import Final

import msgspec
from aiohttp import web
from sqlalchemy import Connection

from alnair.history.database import efficiency, queries
from alnair.history.database.addresses import HistoryError
from alnair.history.database.filters import QueryError, efficiency_of, filter_of
from alnair.processes.controller.history.store import Store

JOBS: Final = "/v1/history/jobs"
EFFICIENCY: Final = "/v1/history/efficiency"


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

    async def added_up(request: web.Request) -> web.Response:
        try:
            wanted = efficiency_of(request.query, time.time())
        except QueryError as error:
            return web.Response(status=400, text=str(error))
        return await _answer(store, lambda one: efficiency.efficiency(one, wanted))

    app.router.add_get(JOBS, listed)
    app.router.add_get(EFFICIENCY, added_up)
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
