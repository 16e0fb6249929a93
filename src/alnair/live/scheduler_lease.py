"""Which scheduler leads, as its lease says, and where it can be asked."""

import datetime as dt

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import KubeError
from alnair.kube.resources import LEASES
from alnair.model import names


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
    def url(self) -> str:
        """Where its holder serves; empty if it does not say so."""
        url = self.metadata.annotations.get(names.METRICS_URL, "")
        return url.rstrip("/") if url.startswith(("http://", "https://")) else ""


async def lease(
    client: Client, name: str = names.SCHEDULER, namespace: str = names.NAMESPACE
) -> Lease | None:
    """Return the scheduler's lease; None if there is none, or it cannot be read."""
    try:
        return await client.get(LEASES.typed(Lease), name, namespace)
    except KubeError:
        return None
