"""What a replay can learn about the scheduler: who leads, and how long its decisions take."""

import datetime as dt
from typing import Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import KubeError
from alnair.live.leader import AskError, ask
from alnair.live.scheduler_lease import lease
from alnair.model import names

#: Profiles of our scheduler, whose lease can be looked at.
OURS: Final = names.SCHEDULERS
_SECONDS: Final = 5.0


class Decisions(msgspec.Struct, frozen=True):
    """How long decisions took, in microseconds; None if nobody can say."""

    count: int = 0
    p50_us: float | None = None
    p99_us: float | None = None


async def decisions(client: Client, profile: str, since: float) -> Decisions:
    """Ask the leader how long its decisions took since a time (seconds since the epoch)."""
    held = await lease(client) if profile in OURS else None
    if held is None:
        return Decisions()
    try:
        answer = await ask(client, held, "/debug/decisions", {"since": str(since)}, _SECONDS)
        return msgspec.json.decode(answer, type=Decisions)
    except (AskError, msgspec.MsgspecError):
        return Decisions()


async def absence(client: Client, profile: str, now: dt.datetime) -> str:
    """Say why nobody places pods of a profile, as far as can be seen, and what to do."""
    try:
        await client.raw("GET", "/readyz")
    except KubeError as error:
        return f"the API server does not answer ({error}): see 'alnair status'"
    if profile not in OURS:
        return (
            f"is a scheduler of the name {profile!r} running? Start it, or choose another "
            f"--profile, such as {names.SCHEDULER}"
        )
    start = "start it with 'alnair up --scheduler' (local cluster) or 'alnair scheduler'"
    held = await lease(client)
    if held is None or not held.spec.holder_identity or held.spec.renew_time is None:
        return f"no alnair scheduler is running (nobody holds its lease): {start}"
    age = (now - held.spec.renew_time).total_seconds()
    if age > held.spec.lease_duration_seconds:
        return (
            f"the alnair scheduler {held.spec.holder_identity} has not been heard of for "
            f"{age:.0f} s: {start}"
        )
    return (
        f"the alnair scheduler {held.spec.holder_identity} leads, but decides nothing: see its log"
    )
