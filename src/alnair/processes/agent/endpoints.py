"""What the process says over HTTP: of itself health and metrics, of pods what they use."""

from collections.abc import Callable, Iterable

from aiohttp import web
from prometheus_client.metrics_core import Metric

from alnair.processes.agent.profiler.pod_profiler import PodProfiler
from alnair.processes.agent.profiler.usage_pages import add_usage_pages
from alnair.serving.exposition import endpoint
from alnair.serving.health import add_health


def application(
    metrics: Callable[[], Iterable[Metric]], profiler: PodProfiler | None = None
) -> web.Application:
    """Return the web application.

    Args:
        metrics: Gives the families of /metrics.
        profiler: Knows what pods use; None: nobody does.
    """
    app = web.Application()
    add_health(app)
    app.router.add_get("/metrics", endpoint(metrics))
    if profiler is not None:
        add_usage_pages(app, profiler)
    return app
