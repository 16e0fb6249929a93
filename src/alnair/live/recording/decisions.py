"""How many decisions a live scheduler has made, and what they took, as it counts them itself."""

import re
from typing import Final

import aiohttp

from alnair.kube.client import Client
from alnair.live.scheduler_lease import lease

_TIMEOUT: Final = aiohttp.ClientTimeout(total=5)
_METRIC: Final = "scheduler_scheduling_algorithm_duration_seconds"
_COUNT: Final = re.compile(rf"^{_METRIC}_count ([0-9.eE+-]+)$", re.MULTILINE)
_SECONDS: Final = re.compile(rf"^{_METRIC}_sum ([0-9.eE+-]+)$", re.MULTILINE)


async def decided(client: Client) -> tuple[int, float] | None:
    """Return the decisions since the leader's start, and their seconds; None if it is not known."""
    held = await lease(client)
    if held is None or not held.url:
        return None
    try:
        async with (
            aiohttp.ClientSession(timeout=_TIMEOUT) as session,
            session.get(f"{held.url}/metrics") as answer,
        ):
            answer.raise_for_status()
            return read(await answer.text())
    except (aiohttp.ClientError, TimeoutError, UnicodeDecodeError):
        return None


def read(metrics: str) -> tuple[int, float] | None:
    """Return the same from the text of its metrics."""
    count, seconds = _COUNT.search(metrics), _SECONDS.search(metrics)
    if count is None or seconds is None:
        return None
    return int(float(count[1])), float(seconds[1])
