"""Fetches a snapshot from the scheduler that leads."""

import contextlib
from collections.abc import Callable
from typing import Final

from alnair.kube.access.connection import Connection
from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.live.leader import AskError, UnreachableError, ask, get
from alnair.live.scheduler_lease import Lease, read
from alnair.model import names

#: A large cluster's snapshot takes a second or two to pack.
_SECONDS: Final = 60.0
_PATH: Final = "/debug/snapshot"


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
    try:
        if url is not None:
            return await get(f"{url.rstrip('/')}{_PATH}", {}, _SECONDS, "the scheduler")
        async with Client(cluster(), timeout=_SECONDS) as client:
            return await ask(client, await _lease(client, lease), _PATH, {}, _SECONDS)
    except UnreachableError as error:
        raise FetchError(
            f"{error}; it serves on its own machine only, unless it was started with --host: say"
            " where it is with --url"
        ) from error
    except AskError as error:
        raise FetchError(str(error)) from error


async def _lease(client: Client, name: str) -> Lease:
    found = None
    with contextlib.suppress(NotFound):
        found = await read(client, name)
    if found is None or not found.spec.holder_identity:
        raise FetchError(
            f"the lease {names.NAMESPACE}/{name} names no scheduler: is one running? Without"
            " leader election or in a dry-run there is no lease: say where it is with --url"
        )
    return found
