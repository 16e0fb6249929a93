"""What the process says about itself over HTTP: health and readiness."""

from collections.abc import Callable

from aiohttp import web

from alnair.serving.health import add_health


def application(ready: Callable[[], bool]) -> web.Application:
    """Return the web application; `ready` tells whether the caches are filled."""
    app = web.Application()
    add_health(app, ready)
    return app
