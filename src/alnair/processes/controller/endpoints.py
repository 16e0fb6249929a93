"""What the process says of itself over HTTP: health, figures, and that it has no history."""

from collections.abc import Callable, Iterable
from typing import Final

from aiohttp import web
from prometheus_client.metrics_core import Metric

from alnair.serving.exposition import endpoint
from alnair.serving.health import add_health

#: To who asks for a history that is not kept.
NO_HISTORY: Final = (
    "it keeps no history: give it --history URL, which the chart's controller.history.enabled does,"
    " and look whether the URL in its secret is empty"
)


def application(
    ready: Callable[[], bool], metrics: Callable[[], Iterable[Metric]]
) -> web.Application:
    """Return the web application.

    Args:
        ready: Tells whether the caches are filled.
        metrics: What is served at /metrics.
    """
    app = web.Application()
    add_health(app, ready)
    app.router.add_get("/metrics", endpoint(metrics))
    return app


def without_history(app: web.Application) -> None:
    """Say to who asks for the history that there is none, and what to do."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=404, text=NO_HISTORY)

    app.router.add_get("/v1/history/{rest:.*}", answer)
