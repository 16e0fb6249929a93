"""Asks the controller that leads for the history that it keeps."""

from collections.abc import Mapping
from typing import Final, TypeVar
from urllib.parse import quote

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.live.leader import AskError, ask
from alnair.live.scheduler_lease import Lease, read
from alnair.model import names

T = TypeVar("T")
_PATH: Final = "/v1/history/jobs"
_EFFICIENCY: Final = "/v1/history/efficiency"
_SECONDS: Final = 30.0


async def jobs(client: Client, query: Mapping[str, str], kind: type[T]) -> T:
    """Return the answer to a list of jobs, decoded to `kind`.

    Raises:
        AskError: No controller can be asked, or it keeps no history.
        KubeError: The cluster cannot be read.
    """
    return msgspec.json.decode(await _asked(client, _PATH, query), type=kind)


async def job(client: Client, parts: tuple[str, str, str], kind: type[T]) -> T:
    """Return what is known of the job of a namespace, kind and name, decoded to `kind`.

    Raises:
        AskError: The same, or there is no such job.
    """
    path = "/".join((_PATH, *(quote(part, safe="") for part in parts)))
    return msgspec.json.decode(await _asked(client, path, {}), type=kind)


async def efficiency(client: Client, query: Mapping[str, str], kind: type[T]) -> T:
    """Return what GPUs were held for and used, decoded to `kind`.

    Raises:
        AskError: No controller can be asked, or it keeps no history.
        KubeError: The cluster cannot be read.
    """
    return msgspec.json.decode(await _asked(client, _EFFICIENCY, query), type=kind)


async def _asked(client: Client, path: str, query: Mapping[str, str]) -> bytes:
    try:
        held: Lease | None = await read(client, names.CONTROLLER)
    except NotFound:
        held = None
    if held is None or not held.spec.holder_identity:
        raise AskError(
            f"the lease {names.NAMESPACE}/{names.CONTROLLER} names no controller: is one running?"
            " Name the database with --history"
        )
    return await ask(client, held, path, query, _SECONDS, "the controller")
