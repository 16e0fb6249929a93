"""An HTTP server for health and metrics, on one address until it is closed."""

import os
from typing import Self

from aiohttp import web


class ServeError(Exception):
    """The address cannot be listened on; says why and what to do."""


class Server:
    """Serves an application until closed; host 0.0.0.0 is all addresses, port 0 a free one."""

    def __init__(self, app: web.Application, host: str, port: int) -> None:
        self._runner = web.AppRunner(app, access_log=None)
        self._host = host
        self._port = port
        self.url = ""

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            # asyncio wraps the system's words in its own: the address in use is said once.
            said = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
            raise ServeError(
                f"health cannot be served on {self._host}:{self._port}: {said}; "
                "choose another address"
            ) from error
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
