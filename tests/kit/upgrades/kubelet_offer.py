"""How long the kubelet offers no slice: asked again and again, as nothing tells of it.

While it offers none it refuses pods that ask for one, for good.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import grpc

from alnair.model import names
from alnair.node.kubelet.api import podresources_pb2 as api

#: The kubelet's pod-resources API in the files of a node.
POD_RESOURCES = "var/lib/kubelet/pod-resources/kubelet.sock"
_ASK = "/v1.PodResourcesLister/GetAllocatableResources"
#: Seconds between questions; the kubelet answers a hundred in a second, of which the agent asks
#: some.
EVERY = 0.03


@contextlib.asynccontextmanager
async def asking(socket: Path) -> AsyncIterator[Callable[[], Awaitable[set[str]]]]:
    """Yield what asks a kubelet for the resources of which it has healthy devices.

    It raises `grpc.aio.AioRpcError` while no kubelet answers.

    Args:
        socket: The kubelet's pod-resources API, as this process sees it.
    """
    async with grpc.aio.insecure_channel(
        f"unix://{socket}", options=[("grpc.default_authority", "localhost")]
    ) as channel:
        # In an answer, resources with their names are where in this message pods are with theirs:
        # both are fields of the same numbers.
        ask = channel.unary_unary(
            _ASK,
            request_serializer=api.ListPodResourcesRequest.SerializeToString,
            response_deserializer=api.ListPodResourcesResponse.FromString,
        )

        async def offered() -> set[str]:
            answer = await ask(api.ListPodResourcesRequest(), timeout=1)
            return {one.name for one in answer.pod_resources}

        yield offered


class KubeletOffer:
    """Asks while it runs.

    Args:
        socket: The kubelet's pod-resources API, as this process sees it.

    Attributes:
        asked: How often it answered.
        gaps: Seconds of each time without slices, as seconds between the answers around it.
    """

    def __init__(self, socket: Path) -> None:
        self.asked = 0
        self.gaps: list[float] = []
        self._socket = socket

    async def run(self) -> None:
        """Ask, until cancelled."""
        offered = 0.0
        is_gap = False
        async with asking(self._socket) as ask:
            while True:
                sent = time.monotonic()
                with contextlib.suppress(grpc.aio.AioRpcError):
                    found = await ask()
                    self.asked += 1
                    if names.VGPU in found:
                        if is_gap:
                            self.gaps.append(time.monotonic() - offered)
                        offered, is_gap = sent, False
                    else:
                        is_gap = bool(offered)
                await asyncio.sleep(EVERY)
