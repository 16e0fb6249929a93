"""The agent's socket for administrators: a unix socket, one JSON line in, one JSON line out.

The file is its owner's alone, and the kernel is asked too who connected: root, or the agent's user.
"""

import asyncio
import contextlib
import os
import socket
from pathlib import Path
from typing import Final, Self

import msgspec

from alnair.node import nvml
from alnair.node.gpu_driver import GpuDriver
from alnair.node.isolation import Isolation
from alnair.node.mps import MpsHealth
from alnair.node.vgpu.containers.container import Status
from alnair.node.vgpu.containers.container_slices import ContainerSlices
from alnair.node.vgpu.containers.peer_credentials import credentials
from alnair.node.vgpu.context_costs import ContextCosts
from alnair.node.vgpu.gpu_slices import by_uuid, overbooked, unlike_gpus, uuid_of
from alnair.node.vgpu.server import VgpuServer, missing
from alnair.node.vgpu.suspensions import Suspensions
from alnair.sharing.tiers import Offer

_MOST_BYTES: Final = 1 << 20
#: Seconds for a request to arrive, and for an answer to be taken.
_PATIENCE: Final = 10.0


class Add(msgspec.Struct, frozen=True, tag="add"):
    """Prepare a container; GPUs may be given by index instead of UUID."""

    assignment: ContainerSlices


class Change(msgspec.Struct, frozen=True, tag="change", omit_defaults=True):
    """Change the slices of a container, on all of its GPUs or on one; None leaves as it is."""

    name: str
    gpu: str | None = None
    memory_mib: int | None = None
    compute_percent: int | None = None
    soft: bool | None = None
    low_priority: bool | None = None
    swap_mib: int | None = None
    borrows: bool | None = None


#: Fields of a share that may change while a container runs.
_CHANGEABLE = ("memory_mib", "compute_percent", "soft", "low_priority", "swap_mib", "borrows")


class Remove(msgspec.Struct, frozen=True, tag="remove"):
    """Take the slices of a container back."""

    name: str


class Suspend(msgspec.Struct, frozen=True, tag="suspend"):
    """Have a container of no pod rest in the host's memory, or no more."""

    name: str
    on: bool


class Show(msgspec.Struct, frozen=True, tag="show"):
    """Tell how things are."""


class GpuStatus(msgspec.Struct, frozen=True):
    """A GPU of the node.

    Attributes:
        index: As NVML counts.
        uuid: Its name.
        model: As NVML names it.
        memory_mib: All that it has.
        context_bytes: What a CUDA context is reckoned to cost; 0: the library's default.
        context_problem: Why that is not known, or "".
    """

    index: int
    uuid: str
    model: str
    memory_mib: int
    context_bytes: int = 0
    context_problem: str = ""


class AgentStatus(msgspec.Struct, frozen=True):
    """How the agent is: its answer to `Show`.

    Attributes:
        pid: Its process.
        folder: Where its state is.
        gpus: Those of the node; empty without NVML.
        nvml: What is wrong with NVML, or "".
        containers: By name.
        tick_ms: Mean duration of a tick.
        isolation: The tiers that the node offers; None: not known.
        mps: The MPS daemon, if there shall be one.
        damaged: Why the folder of a container cannot be used, by its name; it is refused.
    """

    pid: int
    folder: str
    gpus: tuple[GpuStatus, ...]
    nvml: str
    containers: tuple[Status, ...]
    tick_ms: float
    isolation: Offer | None = None
    mps: MpsHealth | None = None
    damaged: dict[str, str] = {}


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of a request.

    Attributes:
        problem: Why it was not done; "" if it was.
        warning: What to know of it then.
        gpus: Of `Add`, the UUIDs of the GPUs that were given, in the order of the request.
        status: Of `Show`.
    """

    problem: str = ""
    warning: str = ""
    gpus: tuple[str, ...] = ()
    status: AgentStatus | None = None


Request = Add | Change | Remove | Suspend | Show


class AdminError(Exception):
    """The agent cannot be asked, or refuses; says why."""


class _SeveralError(Exception):
    """A name means several containers; says which."""


class Admin:
    """Serves the socket. Use as an async context manager.

    Args:
        path: Of the socket.
        server: What the requests are about.
        driver: NVML, which knows the GPUs of the node.
        isolation: What the node offers, to be told.
        costs: What contexts cost, to be told.
    """

    def __init__(
        self,
        path: Path,
        server: VgpuServer,
        driver: GpuDriver | None = None,
        isolation: Isolation | None = None,
        costs: ContextCosts | None = None,
        suspensions: Suspensions | None = None,
    ) -> None:
        self._path = path
        self._server = server
        self._driver = driver
        self._isolation = isolation
        self._costs = costs
        self._suspensions = suspensions
        self._serving: asyncio.Server | None = None

    @property
    def _gpus(self) -> tuple[nvml.NvmlGpu, ...]:
        return self._driver.gpus if self._driver else ()

    @property
    def _nvml(self) -> str:
        return self._driver.problem if self._driver else ""

    async def __aenter__(self) -> Self:
        self._path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Before anybody can connect: a socket's file is as open as the mask lets it be.
        before = os.umask(0o177)
        try:
            listener.bind(str(self._path))
        except OSError as error:
            listener.close()
            raise OSError(
                f"{self._path}: {error.strerror or error}; give a shorter --folder"
            ) from (error)
        finally:
            os.umask(before)
        self._serving = await asyncio.start_unix_server(
            self._serve, sock=listener, limit=_MOST_BYTES
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._serving
        self._serving.close()
        self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, ValueError):
            async with asyncio.timeout(_PATIENCE):
                peer = writer.get_extra_info("socket")
                _, uid = credentials(peer)
                if uid in {0, os.geteuid()}:
                    answer = self._answer(await reader.readline())
                else:
                    answer = Answer("only root may ask the agent")
                writer.write(msgspec.json.encode(answer) + b"\n")
                await writer.drain()
        writer.close()

    def _answer(self, line: bytes) -> Answer:
        try:
            request = msgspec.json.decode(line, type=Request)
        except msgspec.DecodeError as error:
            return Answer(f"this is no request: {error}")
        try:
            match request:
                case Add(assignment):
                    given = by_uuid(self._gpus, assignment)
                    said = self._unlike_gpus(given) or self._lent(given)
                    said = said or self._server.prepare(given)
                    if said:
                        return Answer(said)
                    uuids = tuple(share.uuid for share in given.shares)
                    return Answer(warning=self._overbooked(given), gpus=uuids)
                case Change():
                    return self._change(request)
                case Remove(name):
                    return Answer(self._server.remove(self._named(name)))
                case Suspend(name, on):
                    if self._suspensions is None:
                        return Answer("this agent suspends nobody")
                    return Answer(self._suspensions.want(self._named(name), on))
                case Show():
                    pass
        except _SeveralError as error:
            return Answer(str(error))
        except OSError as error:
            return Answer(f"it cannot be written: {error}")
        return Answer(status=self.status())

    def _change(self, wanted: Change) -> Answer:
        container = self._server.containers.get(self._named(wanted.name))
        if container is None:
            return Answer(missing(wanted.name))
        old = container.assignment
        fields = {
            name: value for name in _CHANGEABLE if (value := getattr(wanted, name)) is not None
        }
        gpu = uuid_of(self._gpus, wanted.gpu) if wanted.gpu is not None else None
        if gpu is not None and gpu not in {share.uuid for share in old.shares}:
            return Answer(f"container {wanted.name} has no slice of {wanted.gpu}")
        shares = tuple(
            msgspec.structs.replace(share, **fields) if gpu in {None, share.uuid} else share
            for share in old.shares
        )
        given = msgspec.structs.replace(old, shares=shares)
        said = self._unlike_gpus(given) or self._lent(given) or self._server.change(given)
        return Answer(said) if said else Answer(warning=self._overbooked(given))

    def _named(self, wanted: str) -> str:
        """Return a container's own name, where it is called as `agent status` does, by its pod.

        Raises:
            _SeveralError: Several are called so, as a pod that goes and one that came in its place.
        """
        containers = self._server.containers
        if wanted in containers:
            return wanted
        found = sorted(
            name
            for name, one in containers.items()
            if (pod := one.assignment.pod).name
            and wanted.replace(" ", "/") == f"{pod.namespace}/{pod.name}/{pod.container}"
        )
        if len(found) > 1:
            raise _SeveralError(f"several are called {wanted}; give one of {', '.join(found)}")
        return found[0] if found else wanted

    def _unlike_gpus(self, wanted: ContainerSlices) -> str:
        return unlike_gpus(self._gpus, wanted, self._nvml)

    def _lent(self, wanted: ContainerSlices) -> str:
        """Return which of the memory that it is to have is lent now, or ""."""
        needs = {share.uuid: share.memory_mib << 20 for share in wanted.shares if share.memory_mib}
        lent = self._server.loans.claim(wanted.pod.uid or wanted.name, needs)
        return f"{lent}: try again in a moment, or remove who borrows" if lent else ""

    def _overbooked(self, given: ContainerSlices) -> str:
        containers = self._server.containers.values()
        return overbooked(self._gpus, given, [s for c in containers for s in c.assignment.shares])

    def status(self) -> AgentStatus:
        """How things are now."""
        count, seconds = self._server.ticks
        mps = self._isolation.mps if self._isolation else None
        return AgentStatus(
            pid=os.getpid(),
            folder=str(self._server.folder),
            gpus=tuple(map(self._with_context, self._gpus)),
            nvml=self._nvml,
            containers=tuple(self._server.status()),
            tick_ms=round(seconds / max(count, 1) * 1000, 3),
            isolation=self._isolation.offer if self._isolation else None,
            mps=mps.health if mps else None,
            damaged=dict(self._server.damaged),
        )

    def _with_context(self, found: nvml.NvmlGpu) -> GpuStatus:
        gpu = GpuStatus(found.index, found.uuid, found.model, found.memory_bytes >> 20)
        if self._costs is None:
            return gpu
        return msgspec.structs.replace(
            gpu,
            context_bytes=self._costs.known.get(gpu.uuid, 0),
            context_problem=self._costs.problems.get(gpu.uuid, ""),
        )


def ask(folder: Path, request: Request) -> Answer:
    """Ask the agent whose folder this is.

    Raises:
        AdminError: There is none, it does not answer, or it refuses.
    """
    path = folder / "admin.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.settimeout(_PATIENCE)
        try:
            peer.connect(str(path))
            peer.sendall(msgspec.json.encode(request) + b"\n")
            data = b"".join(iter(lambda: peer.recv(1 << 16), b""))
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise AdminError(
                f"no agent serves {folder}: start one with 'alnair agent', or give --folder"
            ) from error
        except PermissionError as error:
            raise AdminError(f"only root may ask the agent at {folder}") from error
        except OSError as error:
            raise AdminError(f"the agent at {folder} does not answer: {error}") from error
    try:
        answer = msgspec.json.decode(data, type=Answer)
    except msgspec.DecodeError as error:
        raise AdminError(f"the agent at {folder} answered nonsense: {error}") from error
    if answer.problem:
        raise AdminError(answer.problem)
    return answer
