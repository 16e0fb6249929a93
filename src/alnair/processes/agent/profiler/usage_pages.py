"""What pods used, by HTTP: `/v1/usage` and `/v1/series`; see `alnair.model.usage_feed`."""

import asyncio

import msgspec
from aiohttp import web

from alnair.model.usage import PodUsage
from alnair.model.usage_feed import PodSeries
from alnair.processes.agent.profiler.kept_usage import WrongStreamError
from alnair.processes.agent.profiler.pod_profiler import PodProfiler


def add_usage_pages(app: web.Application, profiler: PodProfiler) -> None:
    """Let the application answer them."""

    async def usage(request: web.Request) -> web.Response:
        after = _number(request, "after", "0")
        page = await profiler.kept.page(after, await _running(profiler))
        return _json(page)

    async def forget(request: web.Request) -> web.Response:
        upto = _number(request, "upto", "")
        try:
            gone = await profiler.kept.ack(upto, request.query.get("stream", ""))
        except WrongStreamError as error:
            raise web.HTTPConflict(text=str(error)) from error
        except OSError as error:
            raise web.HTTPServiceUnavailable(text=f"it cannot be written: {error}") from error
        return _json({"v": 1, "forgotten": gone})

    async def series(request: web.Request) -> web.Response:
        uid = request.query.get("pod", "")
        found = profiler.account(uid)
        if found is None:
            raise web.HTTPNotFound(
                text=f"no pod with uid {uid!r} runs on {profiler.node}: give ?pod=UID"
            )
        times, metrics = profiler.accounts.series(found[0])
        return _json(PodSeries(1, uid, times, metrics))

    app.router.add_get("/v1/usage", usage)
    app.router.add_delete("/v1/usage", forget)
    app.router.add_get("/v1/series", series)


async def _running(profiler: PodProfiler) -> list[PodUsage]:
    """Return the pods that run. Of a hundred it takes long: others have their turn in between."""
    found: list[PodUsage] = []
    for group in list(profiler.accounts.pods):
        if group in profiler.accounts.pods:
            found.append(profiler.usage(group))
            await asyncio.sleep(0)
    return found


def _number(request: web.Request, name: str, default: str) -> int:
    text = request.query.get(name, default)
    # isdecimal() takes digits of other scripts, too, which int() reads; a long one means nothing.
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise web.HTTPBadRequest(text=f"{name}={text!r} is not a number: give ?{name}=SEQ")
    return int(text)


def _json(value: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")
