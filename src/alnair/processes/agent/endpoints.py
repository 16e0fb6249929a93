"""What the process says about itself over HTTP: health and metrics."""

from collections.abc import Callable, Iterable

from aiohttp import web
from prometheus_client.metrics_core import Metric

from alnair.serving.exposition import endpoint
from alnair.serving.health import add_health


def application(metrics: Callable[[], Iterable[Metric]]) -> web.Application:
    """Return the web application; `metrics` gives the families of /metrics."""
    app = web.Application()
    add_health(app)
    app.router.add_get("/metrics", endpoint(metrics))
    return app
