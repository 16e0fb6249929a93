"""A kubelet as far as device plugins see it, over real sockets, with the real one's order of calls.

What it does is `pkg/kubelet/cm/devicemanager` of Kubernetes 1.36, and so are its oddities: a stream
that ends disconnects whichever plugin serves the resource by then.
"""

import asyncio
import base64
import contextlib
import itertools
import json
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import grpc

from alnair.node.kubelet.api import deviceplugin_pb2 as api
from alnair.node.kubelet.api import podresources_pb2 as resources_api

#: Go's gRPC takes no larger messages unless told.
MOST_BYTES = 4 << 20
#: Seconds for a plugin to be reached, and to answer before a container starts.
DIAL, PRE_START = 10.0, 30.0
PATIENCE = 20.0
#: NUMA node under which the checkpoint has devices that are near none.
NO_NUMA = -1


@contextmanager
def short_folder() -> Iterator[Path]:
    """A folder whose sockets have names of less than 108 characters."""
    folder = tempfile.mkdtemp(prefix="alnair-")
    try:
        yield Path(folder)
    finally:
        # Servers that have just ended remove their sockets at their leisure.
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Endpoint:
    """A plugin that registered.

    Attributes:
        resource: What it serves.
        options: What it answered when it was asked for them.
        lists: All lists of devices that it sent.
        stopped: Its stream has ended.
    """

    resource: str
    channel: grpc.aio.Channel
    options: api.DevicePluginOptions
    lists: list[list[api.Device]] = field(default_factory=list)
    stopped: bool = False

    def healthy(self) -> list[str]:
        """Ids that may be given."""
        last = self.lists[-1] if self.lists else []
        return [] if self.stopped else [one.ID for one in last if one.health == "Healthy"]

    async def call(self, method: str, request: Any, answer: Any, seconds: float = PATIENCE) -> Any:
        call = self.channel.unary_unary(
            f"/v1beta1.DevicePlugin/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        return await call(request, timeout=seconds)


@dataclass(frozen=True)
class Held:
    """What a container was given: an entry of the checkpoint."""

    uid: str
    namespace: str
    pod: str
    container: str
    resource: str
    numa: dict[int, list[str]]
    answer: bytes
    #: An init container, which the pod-resources API leaves out.
    init: bool = False

    @property
    def ids(self) -> list[str]:
        return [one for ids in self.numa.values() for one in ids]


class Kubelet:
    """Registers plugins, allocates their devices, asks before containers start.

    Args:
        folder: Its own, such as /var/lib/kubelet.

    Attributes:
        endpoints: By resource.
        registrations: Endpoints' resources in the order of their coming.
        refusal: If set, no plugin is registered, and this is why.
        die_when_asked: If set, it is gone in the middle of the next registration.
        held: What containers were given.
        unlisted: Containers that the pod-resources API does not know yet.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plugins = folder / "device-plugins"
        self.resources = folder / "pod-resources" / "kubelet.sock"
        self.endpoints: dict[str, Endpoint] = {}
        self.registrations: list[str] = []
        self.refusal = ""
        self.die_when_asked = False
        self.held: list[Held] = []
        self.unlisted: set[str] = set()
        self._life = 0
        self._news = asyncio.Condition()
        self._servers: list[grpc.aio.Server] = []
        self._numbers = itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()
        #: Resources that were served before it restarted; a real one forgets them after minutes.
        self._known: set[str] = set()

    async def start(self) -> None:
        """Empty the folder of all sockets, and listen."""
        self.plugins.mkdir(parents=True, exist_ok=True)
        self.resources.parent.mkdir(exist_ok=True)
        for path in self.plugins.iterdir():
            with contextlib.suppress(FileNotFoundError):  # an agent comes and goes meanwhile
                if stat.S_ISSOCK(path.stat().st_mode):
                    path.unlink()
        register = _unary(partial(self._register, self._life), api.RegisterRequest)
        listed = _unary(self._list, resources_api.ListPodResourcesRequest)
        await self._serve(self.resources, "v1.PodResourcesLister", {"List": listed})
        # The last: plugins come at once, and the first one may end it.
        await self._serve(
            self.plugins / "kubelet.sock", "v1beta1.Registration", {"Register": register}
        )

    async def die(self) -> None:
        """Be killed: nothing is told to anybody, and the sockets stay as files."""
        self._life += 1
        servers, self._servers = self._servers, []
        endpoints, self.endpoints = self.endpoints, {}
        self._known.update(endpoints)
        for task in self._tasks - {asyncio.current_task()}:
            task.cancel()
        for endpoint in endpoints.values():
            await endpoint.channel.close()
        for server in servers:
            await server.stop(None)

    async def restart(self) -> None:
        """Be killed and come back."""
        await self.die()
        await self.start()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until something is so; what plugins do is news."""
        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(condition)

    async def registered(self, *resources: str) -> None:
        """Wait until plugins of these have registered and sent their devices."""
        await self.until(
            lambda: all(
                (one := self.endpoints.get(name)) and one.lists and not one.stopped
                for name in resources
            )
        )

    async def admit(
        self, uid: str, container: str, resource: str, count: int = 1, **also: Any
    ) -> Held:
        """Allocate devices to a container: a preference is asked for, and the rest is filled up."""
        endpoint = self.endpoints[resource]
        taken = {one for held in self.held if held.resource == resource for one in held.ids}
        free = [one for one in endpoint.healthy() if one not in taken]
        assert len(free) >= count, f"UnexpectedAdmissionError: {resource}"
        chosen: list[str] = []
        if endpoint.options.get_preferred_allocation_available:
            wish = api.ContainerPreferredAllocationRequest(
                available_deviceIDs=free, allocation_size=count
            )
            preferred = await endpoint.call(
                "GetPreferredAllocation",
                api.PreferredAllocationRequest(container_requests=[wish]),
                api.PreferredAllocationResponse,
            )
            chosen = [i for i in preferred.container_responses[0].deviceIDs if i in free][:count]
        chosen += [one for one in free if one not in chosen][: count - len(chosen)]
        request = api.ContainerAllocateRequest(devices_ids=chosen)
        answer = await endpoint.call(
            "Allocate", api.AllocateRequest(container_requests=[request]), api.AllocateResponse
        )
        near = {d.ID: [n.ID for n in d.topology.nodes] or [NO_NUMA] for d in endpoint.lists[-1]}
        numa: dict[int, list[str]] = {}
        for one in chosen:
            for node in near[one]:
                numa.setdefault(node, []).append(one)
        given = answer.container_responses[0].SerializeToString()
        return self.give(uid, container, resource, numa, given, **also)

    def give(
        self,
        uid: str,
        container: str,
        resource: str,
        numa: dict[int, list[str]],
        answer: bytes = b"",
        *,
        init: bool = False,
        pod: str = "",
    ) -> Held:
        """Note what a container was given, in the checkpoint too. Pods are uid-NAME of `team`."""
        name = pod or uid.removeprefix("uid-")
        held = Held(uid, "team", name, container, resource, numa, answer, init)
        self.held.append(held)
        self.write_checkpoint()
        return held

    def take(self, uid: str) -> None:
        """Take back what a pod had, as before the next admission."""
        self.held = [one for one in self.held if one.uid != uid]
        self.write_checkpoint()

    async def pre_start(self, held: Held) -> None:
        """Ask the plugin before the container starts, if it wants to be asked."""
        endpoint = self.endpoints[held.resource]
        if endpoint.options.pre_start_required:
            request = api.PreStartContainerRequest(devices_ids=held.ids)
            await endpoint.call(
                "PreStartContainer", request, api.PreStartContainerResponse, PRE_START
            )

    def write_checkpoint(self) -> None:
        """Write the file as the real one does: all of it, under another name, and renamed."""
        entries = [
            {
                "PodUID": one.uid,
                "ContainerName": one.container,
                "ResourceName": one.resource,
                "DeviceIDs": {str(node): ids for node, ids in one.numa.items()},
                "AllocResp": base64.b64encode(one.answer).decode(),
            }
            for one in self.held
        ]
        registered = {name: list[str]() for name in sorted(self._known)}
        registered.update((name, one.healthy()) for name, one in self.endpoints.items())
        data = {"PodDeviceEntries": entries or None, "RegisteredDevices": registered}
        # The checksum is of Go's own form of the data; nobody but the kubelet checks it.
        text = json.dumps({"Data": data, "Checksum": 1}, separators=(",", ":"))
        new = self.plugins / ".kubelet_internal_checkpoint"
        new.write_text(text)
        new.rename(self.plugins / "kubelet_internal_checkpoint")

    async def _serve(self, path: Path, service: str, methods: dict[str, Any]) -> None:
        server = grpc.aio.server(options=[("grpc.max_receive_message_length", MOST_BYTES)])
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
        # gRPC removes what it was bound to when it ends, at its leisure; a kubelet that is killed
        # does not.
        bound = path.with_name(f".{next(self._numbers)}")
        server.add_insecure_port(f"unix://{bound}")
        self._servers.append(server)
        await server.start()
        bound.rename(path)

    async def _register(self, life: int, request: api.RegisterRequest, context: Any) -> api.Empty:
        if self.die_when_asked:
            self.die_when_asked = False
            self._beside(self.die())
            await asyncio.Event().wait()
        if request.version != "v1beta1" or self.refusal:
            await context.abort(grpc.StatusCode.UNKNOWN, self.refusal or "requested API version")
        channel = grpc.aio.insecure_channel(
            f"unix://{self.plugins / request.endpoint}",
            options=[
                ("grpc.default_authority", "localhost"),
                ("grpc.max_receive_message_length", MOST_BYTES),
                # Or it would take the connection to another plugin that listened there before.
                ("grpc.use_local_subchannel_pool", 1),
            ],
        )
        endpoint = Endpoint(request.resource_name, channel, api.DevicePluginOptions())
        await asyncio.wait_for(channel.channel_ready(), DIAL)
        endpoint.options = await endpoint.call(
            "GetDevicePluginOptions", api.Empty(), api.DevicePluginOptions
        )
        if life != self._life:  # killed meanwhile: the call ends with its server
            await asyncio.Event().wait()
        self.endpoints[request.resource_name] = endpoint
        self.registrations.append(request.resource_name)
        self._beside(self._watch(endpoint))
        await self._tell()
        return api.Empty()

    async def _watch(self, endpoint: Endpoint) -> None:
        call = endpoint.channel.unary_stream(
            "/v1beta1.DevicePlugin/ListAndWatch",
            request_serializer=api.Empty.SerializeToString,
            response_deserializer=api.ListAndWatchResponse.FromString,
        )
        with contextlib.suppress(grpc.aio.AioRpcError):
            async for answer in call(api.Empty()):
                endpoint.lists.append(list(answer.devices))
                self.write_checkpoint()
                await self._tell()
        endpoint.stopped = True
        await endpoint.channel.close()
        # Whoever serves it by now: the real one does not look whether it is the same.
        if other := self.endpoints.get(endpoint.resource):
            other.stopped = True
            await other.channel.close()
        await self._tell()

    async def _list(self, _: object, __: object) -> resources_api.ListPodResourcesResponse:
        return resources_api.ListPodResourcesResponse(
            pod_resources=[
                resources_api.PodResources(
                    name=one.pod,
                    namespace=one.namespace,
                    containers=[
                        resources_api.ContainerResources(
                            name=one.container,
                            devices=[
                                resources_api.ContainerDevices(
                                    resource_name=one.resource, device_ids=ids
                                )
                                for ids in one.numa.values()
                            ],
                        )
                    ],
                )
                for one in self.held
                if not one.init and one.container not in self.unlisted
            ]
        )

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    def _beside(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def slots(ids: Sequence[str]) -> dict[int, list[str]]:
    """Ids near no NUMA node, as slots are."""
    return {NO_NUMA: list(ids)}


def answer(device: str) -> bytes:
    """What `Allocate` answered for a container."""
    devices = [api.CDIDevice(name=device)] if device else []
    return api.ContainerAllocateResponse(cdi_devices=devices).SerializeToString()


@asynccontextmanager
async def kubelet() -> AsyncIterator[Kubelet]:
    """A kubelet in a folder of its own, which has not started yet."""
    with short_folder() as folder:
        found = Kubelet(folder)
        found.plugins.mkdir()
        found.resources.parent.mkdir()
        try:
            yield found
        finally:
            await found.die()


def _unary(method: Any, request: Any) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        method,
        request_deserializer=request.FromString,
        response_serializer=lambda found: found.SerializeToString(),
    )
