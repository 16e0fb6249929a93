"""What both kinds of trainings are measured with while they grow and shrink."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from alnair.kube.client import Client
from alnair.kube.resources import PODS, Manifest, Resource
from alnair.model import names
from kit.live.real_pods import NAMESPACE

JOB, GRACE = "bench", 5
MOST_SECONDS = 180.0


async def scale(client: Client, kind: Resource[Manifest], workers: int) -> float:
    """As `kubectl scale` does; returns when, seconds since the epoch."""
    change: Manifest = {"spec": {"replicas": workers}}
    await client.merge_patch(kind, JOB, change, NAMESPACE, subresource="scale")
    return time.time()


async def when(holds: Callable[[], Awaitable[bool]]) -> float:
    """The time, seconds since the epoch, at which something holds."""
    until = time.time() + MOST_SECONDS
    while not await holds():
        if time.time() > until:
            raise TimeoutError(f"not within {MOST_SECONDS:g} s")
        await asyncio.sleep(0.02)
    return time.time()


async def pods(client: Client, label: str) -> list[Manifest]:
    """The job's pods that are there, by a label of theirs; those that go are among them."""
    found = (await client.list(PODS, NAMESPACE, label_selector=label)).items
    return [pod for pod in found if pod["status"].get("phase") not in ("Succeeded", "Failed")]


def has_gpus(pod: Manifest) -> bool:
    """Whether the scheduler has given it a node and GPUs."""
    noted = pod["metadata"].get("annotations", {})
    return bool(pod["spec"].get("nodeName")) and names.GPU_ASSIGNMENT in noted


def is_ready(pod: Manifest) -> bool:
    """Whether its containers are."""
    listed = pod["status"].get("containerStatuses") or []
    return bool(listed) and all(one["ready"] for one in listed)
