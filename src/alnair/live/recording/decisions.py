"""How many decisions a live scheduler has made, and what they took, as it counts them itself."""

import re
from typing import Final

from alnair.kube.client import Client
from alnair.live.leader import AskError, ask
from alnair.live.scheduler_lease import lease

_SECONDS_TO_ASK: Final = 5.0
_METRIC: Final = "scheduler_scheduling_algorithm_duration_seconds"
_COUNT: Final = re.compile(rf"^{_METRIC}_count ([0-9.eE+-]+)$", re.MULTILINE)
_SECONDS: Final = re.compile(rf"^{_METRIC}_sum ([0-9.eE+-]+)$", re.MULTILINE)


async def decided(client: Client) -> tuple[int, float] | None:
    """Return the decisions since the leader's start, and their seconds; None if it is not known."""
    held = await lease(client)
    if held is None:
        return None
    try:
        return read((await ask(client, held, "/metrics", {}, _SECONDS_TO_ASK)).decode())
    except (AskError, UnicodeDecodeError):
        return None


def read(metrics: str) -> tuple[int, float] | None:
    """Return the same from the text of its metrics."""
    count, seconds = _COUNT.search(metrics), _SECONDS.search(metrics)
    if count is None or seconds is None:
        return None
    return int(float(count[1])), float(seconds[1])
