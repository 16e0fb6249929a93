"""Leases of processes that ended without giving them back, for which ours wait."""

import datetime as dt
from typing import Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import KubeError
from alnair.kube.lease import LeaseSpec
from alnair.kube.resources import LEASES
from alnair.model import names


class _Lease(msgspec.Struct):
    spec: LeaseSpec = LeaseSpec()


_LEASES: Final = LEASES.typed(_Lease)


async def waits_for(client: Client, name: str, began: float) -> str:
    """Say for whom a process waits before it works; empty if it does not.

    Args:
        client: An open client.
        name: Of the process and of its lease.
        began: When the process did, in seconds since the epoch.
    """
    try:
        spec = (await client.get(_LEASES, name, names.NAMESPACE)).spec
    except KubeError:
        return ""
    return waiting(name, spec, began)


def waiting(name: str, spec: LeaseSpec, began: float) -> str:
    """Return the same from the lease: who has renewed it since the process began works."""
    if not spec.holder_identity or not spec.renew_time:
        return ""
    renewed = dt.datetime.fromisoformat(spec.renew_time).timestamp()
    if renewed >= began:
        return ""
    return (
        f"{name} does not lead yet: {spec.holder_identity} holds the lease and last renewed it"
        f" {began - renewed:.0f} s before this one began; without another renewal this one leads"
        f" within {spec.lease_duration_seconds or 0} s"
    )
