"""The kubelet's pod-resources API: which container holds which ids, by the names of pods."""

import asyncio
import time
from pathlib import Path
from typing import Final, Self

import grpc
import msgspec

from alnair.node.kubelet.api import podresources_pb2 as api

_LIST: Final = "/v1.PodResourcesLister/List"
#: Seconds for an answer.
_PATIENCE: Final = 10.0
#: Seconds until it is asked again where the connection broke.
_AGAIN: Final = 0.1
#: A node's answer grows with its pods: client-go's clients take as much.
_MOST_BYTES: Final = 16 << 20


class PodResourcesError(Exception):
    """The kubelet does not answer; says why."""


class HeldDevices(msgspec.Struct, frozen=True):
    """Ids of one resource that a container holds."""

    namespace: str
    pod: str
    container: str
    resource: str
    ids: frozenset[str]


class PodResources:
    """A client of the API. Use as an async context manager.

    Args:
        socket: Of the kubelet; it need not be there yet.
    """

    def __init__(self, socket: Path) -> None:
        self._channel = grpc.aio.insecure_channel(
            f"unix://{socket}",
            options=[
                ("grpc.default_authority", "localhost"),
                ("grpc.max_receive_message_length", _MOST_BYTES),
                # A kubelet that restarts is back in seconds.
                ("grpc.max_reconnect_backoff_ms", 1000),
            ],
        )
        self._list = self._channel.unary_unary(
            _LIST,
            request_serializer=api.ListPodResourcesRequest.SerializeToString,
            response_deserializer=api.ListPodResourcesResponse.FromString,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close()

    async def answer(self) -> api.ListPodResourcesResponse:
        """Return all that the kubelet says, as it says it: CPUs, memory and devices, at one moment.

        Raises:
            PodResourcesError: The kubelet does not answer.
        """
        deadline = time.monotonic() + _PATIENCE
        while True:
            left = max(deadline - time.monotonic(), 0)
            try:
                return await self._list(
                    api.ListPodResourcesRequest(), timeout=left, wait_for_ready=True
                )
            except grpc.aio.AioRpcError as error:
                # It went while it was asked, by a connection that was there still: wait for it.
                if error.code() is grpc.StatusCode.UNAVAILABLE and time.monotonic() < deadline:
                    await asyncio.sleep(_AGAIN)
                    continue
                raise PodResourcesError(
                    f"the kubelet does not say who holds which devices: {error.details()}"
                ) from error

    async def list(self) -> list[HeldDevices]:
        """Return what all containers hold; init containers that end are not among them.

        Raises:
            PodResourcesError: The kubelet does not answer.
        """
        return [
            HeldDevices(
                pod.namespace,
                pod.name,
                container.name,
                devices.resource_name,
                frozenset(devices.device_ids),
            )
            for pod in (await self.answer()).pod_resources
            for container in pod.containers
            for devices in container.devices
        ]
