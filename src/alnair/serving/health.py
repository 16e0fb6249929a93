"""Where processes say how they are: `/healthz`, and `/readyz` where they must read much first."""

from collections.abc import Callable

from aiohttp import web


def add_health(app: web.Application, ready: Callable[[], bool] | None = None) -> None:
    """Serve `/healthz`; and, with `ready`, `/readyz`, which says no until the caches are filled."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_: web.Request) -> web.Response:
        if ready is None or ready():
            return web.Response(text="ok")
        return web.Response(status=503, text="the cluster's objects are still being read")

    app.router.add_get("/healthz", healthz)
    if ready is not None:
        app.router.add_get("/readyz", readyz)
