"""Which scheduler leads, as its lease says, and where it can be asked."""

import datetime as dt
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import KubeError
from alnair.kube.objects.annotation_documents import UNREADABLE, check_version
from alnair.kube.resources import LEASES
from alnair.model import names
from alnair.model.api_types import Holdings

#: A pod's path at the API server, and nothing else there: whoever asks sends what it may.
OF_A_POD: Final = re.compile(
    r"/api/v1/namespaces/[a-z0-9-]+/pods/(?P<scheme>https?):[a-z0-9.-]+:\d+/proxy"
)
_HOLDINGS: Final = msgspec.json.Decoder(Holdings)


class _Metadata(msgspec.Struct, frozen=True):
    annotations: dict[str, str] = {}


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str = ""
    lease_duration_seconds: int = 0
    renew_time: dt.datetime | None = None


class Lease(msgspec.Struct):
    """The scheduler's lease."""

    metadata: _Metadata
    spec: _LeaseSpec = _LeaseSpec()

    @property
    def holdings(self) -> Holdings | None:
        """What its holder keeps for others; None if it does not say so in words that we know."""
        return read_holdings(self.metadata.annotations)

    @property
    def where(self) -> str:
        """Where its holder serves; empty if it does not say so, or nobody can reach it there."""
        where = self.metadata.annotations.get(names.METRICS_URL, "").rstrip("/")
        is_known = where.startswith(("http://", "https://")) or OF_A_POD.fullmatch(where)
        return where if is_known else ""


def read_holdings(annotations: Mapping[str, str]) -> Holdings | None:
    """Return what a lease's holder keeps for others; None if it is not said in words we know."""
    try:
        held = _HOLDINGS.decode(annotations.get(names.HOLDINGS, ""))
        check_version(held.v)
    except UNREADABLE:
        return None
    return held


async def lease(
    client: Client, name: str = names.SCHEDULER, namespace: str = names.NAMESPACE
) -> Lease | None:
    """Return the scheduler's lease; None if there is none, or it cannot be read."""
    try:
        return await read(client, name, namespace)
    except KubeError:
        return None


async def read(client: Client, name: str, namespace: str = names.NAMESPACE) -> Lease:
    """Return a scheduler's lease.

    Raises:
        KubeError: It cannot be read; NotFound: there is none.
    """
    return await client.get(LEASES.typed(Lease), name, namespace)
