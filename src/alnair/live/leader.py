"""Asks the scheduler that leads: where its lease says, or through the API server if it is a pod.

The API server hands on neither the token nor the certificate of who asks. What a pod wants to see
is therefore a token made for this: of one service account, for our audience, for ten minutes.
Whoever may make it may ask; seen by others, it opens nothing but these pages.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import Forbidden, KubeError, NotFound
from alnair.kube.resources import SERVICE_ACCOUNTS
from alnair.live.scheduler_lease import OF_A_POD, Lease
from alnair.model import names

#: Seconds that a token lasts: the least that the API server gives.
_LASTS: Final = 600


class AskError(Exception):
    """It cannot be asked, or refuses; says who and why."""


class UnreachableError(AskError):
    """Nothing answers where it is said to serve."""


class _Token(msgspec.Struct):
    token: str = ""


class _TokenRequest(msgspec.Struct):
    status: _Token = msgspec.field(default_factory=_Token)


async def ask(
    client: Client,
    lease: Lease,
    path: str,
    query: Mapping[str, str],
    seconds: float,
    what: str = "the scheduler",
) -> bytes:
    """Return what the holder of the lease answers.

    Args:
        client: An open client of the cluster.
        lease: Of the scheduler.
        path: Such as /debug/explain.
        query: Of the request.
        seconds: For the answer of a scheduler that is no pod; of a pod those of the client count.
        what: Holds the lease.

    Raises:
        AskError: It does not answer with 200.
    """
    who = f"{what} {lease.spec.holder_identity}"
    where = lease.where
    if not where:
        raise AskError(f"{who} does not say where it serves: its own machine or pod alone")
    if OF_A_POD.fullmatch(where):
        return await _through_the_api_server(client, who, where, path, query)
    return await get(f"{where}{path}", query, seconds, who)


async def get(url: str, query: Mapping[str, str], seconds: float, who: str) -> bytes:
    """Return the answer of a URL, asked without a token.

    Raises:
        AskError: There is none in time, or not with 200.
    """
    root = "{0.scheme}://{0.netloc}".format(urlsplit(url))
    timeout = aiohttp.ClientTimeout(total=seconds)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(url, params=query) as answer,
        ):
            if answer.status != 200:
                raise AskError(f"{who} at {root} says: {(await answer.text()).strip()}")
            return await answer.read()
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        why = str(error) or "no answer in time"
        raise UnreachableError(f"{who} cannot be reached at {root}: {why}") from error


async def _through_the_api_server(
    client: Client, who: str, where: str, path: str, query: Mapping[str, str]
) -> bytes:
    found = OF_A_POD.fullmatch(where)
    assert found is not None
    # A token never goes out in the clear; without TLS, nobody asks for one.
    headers = await token(client, who) if found["scheme"] == "https" else {}
    try:
        return await client.raw("GET", where + path, query=query, headers=headers)
    except Forbidden as error:
        raise AskError(f"{who} may not be asked: {error}") from error
    except KubeError as error:
        raise AskError(f"{who} cannot be asked through the API server: {error}") from error


async def token(client: Client, who: str) -> dict[str, str]:
    """Return the header with which pages of pods may be read, made by the API server.

    Raises:
        AskError: Who asks may not have it.
    """
    wanted = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": [names.TOKEN_AUDIENCE], "expirationSeconds": _LASTS},
    }
    account = f"{names.NAMESPACE}/{names.DEBUG_ACCOUNT}"
    try:
        made = await client.create(
            SERVICE_ACCOUNTS.typed(_TokenRequest),
            wanted,
            names.NAMESPACE,
            name=names.DEBUG_ACCOUNT,
            subresource="token",
        )
    except NotFound as error:
        raise AskError(f"{who} may not be asked: there is no service account {account}") from error
    except KubeError as error:
        raise AskError(f"{who} may not be asked: no token of {account}: {error}") from error
    return {names.TOKEN_HEADER: made.status.token}
