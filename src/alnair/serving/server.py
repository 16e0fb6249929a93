"""An HTTP server for health, metrics and debug pages, on one address until it is closed."""

import asyncio
import os
import ssl
from typing import Self

import msgspec
from aiohttp import web

from alnair.kube.client import Client
from alnair.serving.access import Access
from alnair.serving.tls import CertificateError, CertificateFiles, ServerTls


class ServeError(Exception):
    """It cannot be served; says why and what to do."""


class Secured(msgspec.Struct, frozen=True):
    """How a server speaks TLS, and lets in past its health only whom the API server allows.

    Attributes:
        client: Of the API server; open.
        files: Certificate and key; None: it makes its own.
    """

    client: Client
    files: CertificateFiles | None = None


class Server:
    """Serves an application until closed.

    Args:
        app: What is served; `secured` adds to it.
        host: Address; 0.0.0.0 is all.
        port: 0 takes a free one.
        secured: None: plain HTTP, and anybody may read.
    """

    def __init__(
        self, app: web.Application, host: str, port: int, secured: Secured | None = None
    ) -> None:
        self._host = host
        self._port = port
        self._secured = secured
        self._following: asyncio.Task[None] | None = None
        self.url = ""
        if secured is not None:
            Access(secured.client).guard(app)
        self._runner = web.AppRunner(app, access_log=None)

    async def __aenter__(self) -> Self:
        context = self._tls()
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port, ssl_context=context)
        try:
            await site.start()
        except OSError as error:
            await self._end()
            # asyncio wraps the system's words in its own: the address in use is said once.
            said = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
            raise ServeError(
                f"health cannot be served on {self._host}:{self._port}: {said}; "
                "choose another address"
            ) from error
        host, port = self._runner.addresses[0][:2]
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    def _tls(self) -> ssl.SSLContext | None:
        if self._secured is None:
            return None
        try:
            tls = ServerTls(self._secured.files)
        except CertificateError as error:
            raise ServeError(str(error)) from error
        self._following = asyncio.create_task(tls.follow())
        return tls.context

    async def _end(self) -> None:
        if self._following is not None:
            self._following.cancel()
        await self._runner.cleanup()
