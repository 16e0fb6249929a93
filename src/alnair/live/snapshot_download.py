"""Fetches a snapshot from the scheduler that leads."""

from collections.abc import Callable

import aiohttp

from alnair.kube.access.connection import Connection
from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.resources import LEASES
from alnair.model import names

#: A large cluster's snapshot takes a second or two to pack.
_SECONDS = 60.0


class FetchError(Exception):
    """The scheduler cannot be asked; says why and what to do."""


async def fetch(url: str | None, cluster: Callable[[], Connection], lease: str) -> bytes:
    """Return the answer of /debug/snapshot.

    Args:
        url: Where the scheduler serves; None: where its lease says.
        cluster: Finds the cluster of the lease; called only without `url`.
        lease: The name of the lease.

    Raises:
        FetchError: It does not answer, or stands by.
        KubeError: The lease that says where it is cannot be read.
    """
    if url is None:
        url = await _where(cluster(), lease)
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"{url.rstrip('/')}/debug/snapshot") as answer,
        ):
            if answer.status != 200:
                raise FetchError(f"{url} answered {answer.status}: {(await answer.text()).strip()}")
            return await answer.read()
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise FetchError(
            f"the scheduler at {url} does not answer ({str(error) or 'not in time'}): it serves on"
            " its own machine only, unless it was started with --host; say where it is with --url"
        ) from error


async def _where(cluster: Connection, lease: str) -> str:
    async with Client(cluster) as client:
        try:
            found = await client.get(LEASES, lease, names.NAMESPACE)
        except NotFound:
            found = {}
    url = (found.get("metadata", {}).get("annotations") or {}).get(names.METRICS_URL)
    if not url:
        raise FetchError(
            f"the lease {names.NAMESPACE}/{lease} names no scheduler: is one running? Without"
            " leader election or in a dry-run there is no lease: say where it is with --url"
        )
    return str(url)
