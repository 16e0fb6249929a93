"""One resource, served to the kubelet by the device-plugin API (v1beta1)."""

import asyncio
import contextlib
import logging
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import grpc
import msgspec

from alnair.node.kubelet.api import deviceplugin_pb2 as api
from alnair.node.kubelet.call_times import CallTimes

VERSION: Final = "v1beta1"
_SERVICE: Final = "v1beta1.DevicePlugin"
_REGISTER: Final = "/v1beta1.Registration/Register"
#: Seconds for the kubelet to answer; it calls back before it does.
_PATIENCE: Final = 10.0

_log = logging.getLogger(__name__)


class PluginDevice(msgspec.Struct, frozen=True):
    """An id that the kubelet may give to a container.

    Attributes:
        id: At most 63 characters.
        is_healthy: Whether it may be given now.
        numa: The NUMA node that it is near to; None: all are alike.
    """

    id: str
    is_healthy: bool = True
    numa: int | None = None


class StartRefusedError(Exception):
    """A container may not start now; says why, for the pod's event."""


class DevicePlugin(Protocol):
    """What is asked about a resource."""

    resource: str

    def devices(self) -> Sequence[PluginDevice]:
        """All ids, as they are now."""
        ...

    def prefer(self, available: Sequence[str], must: Sequence[str], size: int) -> Sequence[str]:
        """Which of the available ids a container should get."""
        ...

    def allocate(self, ids: Sequence[str]) -> str:
        """Return the full CDI name of what a container with these ids gets."""
        ...

    async def start(self, ids: frozenset[str]) -> None:
        """Prepare the start of the container with these ids; raises StartRefusedError."""
        ...


class PluginServer:
    """Serves one resource on a socket, and registers it with the kubelet.

    Args:
        folder: Of device plugins; the kubelet's socket is in it too.
        plugin: Answers.

    Attributes:
        plugin: The same.
        times: How long calls took.
        watched: Streams of devices that are open: the kubelet's, if it is well.
        watches: Streams of devices so far.
        registrations: Times that it was registered.
        on_hang_up: Called when a stream has ended.
    """

    def __init__(self, folder: Path, plugin: DevicePlugin) -> None:
        self.plugin = plugin
        self.times = CallTimes()
        self.watched = 0
        self.watches = 0
        self.registrations = 0
        self.on_hang_up: Callable[[], None] = lambda: None
        self._folder = folder
        self._name = "alnair-" + plugin.resource.replace("/", "-") + ".sock"
        self._server: grpc.aio.Server | None = None
        self._file = (0, 0)
        self._changed = asyncio.Event()

    @property
    def is_there(self) -> bool:
        """Whether the socket is ours still: a kubelet that starts removes it."""
        return self._server is not None and identity(self._folder / self._name) == self._file

    async def serve(self) -> None:
        """Serve on a new socket.

        Raises:
            OSError: The folder is not there, or not ours.
        """
        await self.stop()
        path = self._folder / self._name
        # When it stops, gRPC removes whatever lies where it was bound: not here, where by then
        # another agent may listen.
        bound = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        # The list of all free ids comes with a request.
        server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
        server.add_generic_rpc_handlers((self._handlers(),))
        try:
            server.add_insecure_port(f"unix://{bound}")
        except RuntimeError as error:
            raise OSError(f"{path} cannot be served: {error}") from error
        await server.start()
        try:
            bound.rename(path)
        except OSError:
            await server.stop(None)
            raise
        self._server, self._file = server, identity(path)

    async def register(self) -> None:
        """Tell the kubelet of it.

        Raises:
            grpc.aio.AioRpcError: The kubelet does not answer, or refuses.
        """
        request = api.RegisterRequest(
            version=VERSION,
            endpoint=self._name,
            resource_name=self.plugin.resource,
            options=_OPTIONS,
        )
        async with grpc.aio.insecure_channel(
            f"unix://{self._folder / 'kubelet.sock'}",
            options=[("grpc.default_authority", "localhost")],
        ) as channel:
            call = channel.unary_unary(
                _REGISTER,
                request_serializer=api.RegisterRequest.SerializeToString,
                response_deserializer=api.Empty.FromString,
            )
            await call(request, timeout=_PATIENCE)
        self.registrations += 1
        _log.info("%s is registered with the kubelet", self.plugin.resource)

    async def stop(self) -> None:
        """Serve no more; containers that run are not touched."""
        if self._server is not None:
            await self._server.stop(None)
            self._server = None
            with contextlib.suppress(OSError):
                if identity(self._folder / self._name) == self._file:
                    (self._folder / self._name).unlink()

    def tell(self) -> None:
        """Send the devices anew: they changed."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _handlers(self) -> grpc.GenericRpcHandler:
        def unary(
            name: str, method: Any, request: Any
        ) -> tuple[str, "grpc.RpcMethodHandler[Any, Any]"]:
            async def timed(asked: Any, context: "grpc.aio.ServicerContext[Any, Any]") -> Any:
                began, result = time.perf_counter(), "error"
                answer, refusal = None, ""
                try:
                    answer = await method(asked)
                    result = "ok"
                except StartRefusedError as error:
                    result, refusal = "refused", str(error)
                finally:
                    # Before the kubelet is answered: who asks for the figures then has this call.
                    self.times.took(name, result, time.perf_counter() - began)
                if result == "refused":
                    await context.abort(grpc.StatusCode.FAILED_PRECONDITION, refusal)
                return answer

            return name, grpc.unary_unary_rpc_method_handler(
                timed,
                request_deserializer=request.FromString,
                response_serializer=lambda answer: answer.SerializeToString(),
            )

        watch = grpc.unary_stream_rpc_method_handler(
            self._watch,
            request_deserializer=api.Empty.FromString,
            response_serializer=api.ListAndWatchResponse.SerializeToString,
        )
        methods = (
            unary("GetDevicePluginOptions", self._options, api.Empty),
            unary("GetPreferredAllocation", self._prefer, api.PreferredAllocationRequest),
            unary("Allocate", self._allocate, api.AllocateRequest),
            unary("PreStartContainer", self._start, api.PreStartContainerRequest),
        )
        return grpc.method_handlers_generic_handler(
            _SERVICE, {"ListAndWatch": watch, **dict(methods)}
        )

    async def _options(self, _: api.Empty) -> api.DevicePluginOptions:
        return _OPTIONS

    async def _watch(self, _: api.Empty, __: object) -> AsyncIterator[api.ListAndWatchResponse]:
        self.watched += 1
        self.watches += 1
        try:
            sent = None
            while True:
                changed, found = self._changed, self.plugin.devices()
                if found != sent:
                    sent = found
                    yield api.ListAndWatchResponse(devices=map(_message, found))
                await changed.wait()
        finally:
            self.watched -= 1
            self.on_hang_up()

    async def _prefer(
        self, request: api.PreferredAllocationRequest
    ) -> api.PreferredAllocationResponse:
        answers = (
            self.plugin.prefer(
                one.available_deviceIDs, one.must_include_deviceIDs, one.allocation_size
            )
            for one in request.container_requests
        )
        return api.PreferredAllocationResponse(
            container_responses=(
                api.ContainerPreferredAllocationResponse(deviceIDs=ids) for ids in answers
            )
        )

    async def _allocate(self, request: api.AllocateRequest) -> api.AllocateResponse:
        return api.AllocateResponse(
            container_responses=(
                api.ContainerAllocateResponse(
                    cdi_devices=[api.CDIDevice(name=self.plugin.allocate(one.devices_ids))]
                )
                for one in request.container_requests
            )
        )

    async def _start(self, request: api.PreStartContainerRequest) -> api.PreStartContainerResponse:
        await self.plugin.start(frozenset(request.devices_ids))
        return api.PreStartContainerResponse()


_OPTIONS: Final = api.DevicePluginOptions(
    pre_start_required=True, get_preferred_allocation_available=True
)


def _message(device: PluginDevice) -> api.Device:
    nodes = [] if device.numa is None else [api.NUMANode(ID=device.numa)]
    return api.Device(
        ID=device.id,
        health="Healthy" if device.is_healthy else "Unhealthy",
        topology=api.TopologyInfo(nodes=nodes) if nodes else None,
    )


def identity(path: Path) -> tuple[int, int]:
    """Return what tells this file from a later one of its name; zeros where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 (many times a second)
    except OSError:
        return 0, 0
    return found.st_ino, found.st_ctime_ns
