"""Asking components whether they are well."""

import contextlib
import os
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp

from alnair.local.access.certificates import Pki
from alnair.local.components.components import COMPONENTS, ETCD_SOCKET
from alnair.local.errors import LocalClusterError
from alnair.local.layout import Layout

_PROBE_SECONDS = 2.0
#: The same where it is asked just once: on a busy machine a process may stand still for seconds.
ONCE_SECONDS = 10.0
#: What is said of one that did not answer begins so.
NO_ANSWER = "no answer within"
#: The longest path of a socket that every supported system takes, in bytes.
_SOCKET_PATH = 100


def trust(layout: Layout, pki: Pki) -> ssl.SSLContext:
    """TLS towards the cluster's servers, as its administrator.

    Raises:
        LocalClusterError: The certificates are missing or damaged.
    """
    admin = pki.client("admin")
    try:
        context = ssl.create_default_context(cafile=str(pki.ca.certificate))
        context.load_cert_chain(admin.certificate, admin.key)
    except OSError as error:
        # SSLError is an OSError, too.
        raise LocalClusterError(
            f"the certificates of cluster {layout.name} are missing or damaged:"
            f" run 'alnair up --name {layout.name}', which makes new ones"
        ) from error
    return context


async def probe(
    name: str,
    layout: Layout,
    port: int | None,
    context: ssl.SSLContext,
    seconds: float = _PROBE_SECONDS,
) -> str | None:
    """Asks a component once.

    Args:
        name: Of the component.
        layout: Of its cluster.
        port: Where it listens.
        context: For TLS.
        seconds: For its answer.

    Returns:
        None when it is well, otherwise what it (or the connection to it) says.
    """
    url = COMPONENTS[name].health
    if name == "etcd":
        with _short_path(layout.folder) as folder:
            return await ask(url, aiohttp.UnixConnector(path=f"{folder}/{ETCD_SOCKET}"), seconds)
    return await ask(url.format(port=port), aiohttp.TCPConnector(ssl=context), seconds)


async def ask(
    url: str, connector: aiohttp.BaseConnector, seconds: float = _PROBE_SECONDS
) -> str | None:
    """Asks a URL once; None when the answer is good, otherwise what it says."""
    timeout = aiohttp.ClientTimeout(total=seconds)
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
            session.get(url) as response,
        ):
            text = await response.text()
            if response.status == 200 and '"health":"false"' not in text:
                return None
            return f"{response.status}: {_telling(text)}"
    except TimeoutError:
        return f"{NO_ANSWER} {seconds:g} s"
    except (aiohttp.ClientError, OSError) as error:
        return str(error) or type(error).__name__


def _telling(text: str) -> str:
    """The line that matters: the first failing check of a list of checks, or the first of all."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    failing = [line.removeprefix("[-]") for line in lines if line.startswith("[-]")]
    return (failing or lines or ["no answer"])[0][:200]


@contextlib.contextmanager
def _short_path(folder: Path) -> Iterator[str]:
    """A path of the folder that is short enough for a socket in it."""
    if len(os.fsencode(folder)) + len(ETCD_SOCKET) + 1 <= _SOCKET_PATH:
        yield str(folder)
        return
    if not sys.platform.startswith("linux"):
        raise LocalClusterError(
            f"the path {folder} is too long for a socket on this system:"
            " set ALNAIR_STATE to a shorter folder"
        )
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
