"""Cares for an MPS control daemon of its own: starts it, asks how it is, restarts it, stops it.

The daemon runs in the foreground (`-f`), with pipe and log folders that nobody else uses, so that a
daemon of the machine's owner stays as it is. It is asked for its servers every few seconds; one
that is gone or does not answer is replaced, ever more slowly if that does not help. At the end it
is stopped, but not while it has clients, whom that would end: then the next agent takes it over, as
it does after a crash. The compute mode of a GPU is never changed: it belongs to the owner of the
machine.
"""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from alnair.model.plurals import counted
from alnair.node.mps_control import Control, MpsError

#: Clients per GPU that every driver since Volta serves (MPS documentation, "Limitations"); drivers
#: since release 590 serve more.
MOST_CLIENTS = 48
#: Questions in a row without an answer after which a daemon is replaced: one may be bad luck.
PATIENCE = 2
#: What ends a daemon, and how often it is looked at then, 50 times a second: one that was killed
#: may still be busy in the kernel.
_ENDING = ((signal.SIGTERM, 50), (signal.SIGKILL, 500))


_log = logging.getLogger(__name__)


class MpsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to run one daemon; times are in seconds.

    Attributes:
        folder: Ours alone; gets `pipe`, which containers mount, `log`, and `daemon`, its pid.
        gpus: UUIDs of the GPUs it serves; none: all.
        command: The control program.
        percent: Most SMs that any client gets, in percent; a client's variable can only lower it.
        memory_mib: Most device memory of any one client, by the GPU's number among `gpus`.
        check_s: Time between two questions how it is.
        answer_s: How long an answer may take.
        first_delay_s: Wait before the first restart; doubles with each one that does not help.
        most_delay_s: Longest wait before a restart.
        steady_s: After so long in health, the next failure counts as a first one.
    """

    folder: Path
    gpus: tuple[str, ...] = ()
    command: tuple[str, ...] = ("nvidia-cuda-mps-control",)
    percent: int = 100
    memory_mib: Mapping[int, int] = {}
    check_s: float = 5.0
    answer_s: float = 5.0
    first_delay_s: float = 1.0
    most_delay_s: float = 60.0
    steady_s: float = 60.0

    @property
    def pipe(self) -> Path:
        """The folder by which clients find the daemon."""
        return self.folder / "pipe"

    @property
    def log(self) -> Path:
        """The folder of the daemon's logs."""
        return self.folder / "log"


class MpsState(StrEnum):
    """Where a daemon stands."""

    STARTING = "starting"
    HEALTHY = "healthy"
    SICK = "sick"
    RESTARTING = "restarting"
    STOPPED = "stopped"


class MpsHealth(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a daemon.

    Attributes:
        state: Only HEALTHY promises anything.
        why: What went wrong last, in words; "" if nothing did. A restart that helped keeps it.
        failures: Lives that ended unasked since it was last steady.
        restarts: All lives that ended unasked.
        servers: Pids of its MPS servers, one per user that has clients.
        clients: Pids of the clients of all servers.
    """

    state: MpsState
    why: str = ""
    failures: int = 0
    restarts: int = 0
    servers: tuple[int, ...] = ()
    clients: tuple[int, ...] = ()

    @property
    def missing(self) -> str:
        """For `alnair.sharing.tiers`: "" if a new client can come, else why not."""
        if self.state is not MpsState.HEALTHY:
            return f"the MPS daemon is {self.state.value}" + (f": {self.why}" if self.why else "")
        if len(self.clients) >= MOST_CLIENTS:
            return (
                f"the MPS daemon serves {counted(len(self.clients), 'client')}, of at "
                f"most {MOST_CLIENTS}"
            )
        return ""


def restart_delay(options: MpsOptions, failures: int) -> float:
    """Seconds to wait before the restart after so many failures in a row (at least 1)."""
    return min(options.most_delay_s, options.first_delay_s * 2.0 ** min(failures - 1, 32))


def client_variables(
    options: MpsOptions, *, percent: int | None = None, memory_mib: Mapping[int, int] | None = None
) -> dict[str, str]:
    """Variables of a container whose processes shall be clients; it must mount `options.pipe`.

    A container can change its variables: they can lower what the daemon allows, never raise it, but
    without the first one its processes run beside MPS (docs/how-to/share-with-mps.md).

    Args:
        options: Of the daemon.
        percent: SMs of each process, 1-100.
        memory_mib: Device memory of each process, by the GPU's number.
    """
    found = {"CUDA_MPS_PIPE_DIRECTORY": str(options.pipe)}
    if percent is not None:
        found["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(percent)
    if memory_mib:
        limits = (f"{gpu}={mib}M" for gpu, mib in sorted(memory_mib.items()))
        found["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = ",".join(limits)
    return found


class MpsDaemon:
    """One daemon, cared for while `run` runs; `health` is what is known of it."""

    def __init__(self, options: MpsOptions) -> None:
        self.health = MpsHealth(state=MpsState.STARTING)
        self.options = options
        self._mark = options.folder / "daemon"
        self._pid = 0  # of the daemon, 0: not known
        self._exit = ""
        environment = {
            "CUDA_MPS_PIPE_DIRECTORY": str(options.pipe),
            "CUDA_MPS_LOG_DIRECTORY": str(options.log),
        }
        if options.gpus:
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(options.gpus)
        self._control = Control(options.command, environment, answer_s=options.answer_s)

    async def run(self) -> None:
        """Keeps the daemon in health until cancelled, then stops it unless it has clients.

        Raises:
            OSError: The folder cannot be written.
        """
        for folder in (self.options.pipe, self.options.log):
            folder.mkdir(parents=True, exist_ok=True)
        try:
            while True:
                why = await self._live()
                await self._end()
                failures = self.health.failures + 1
                self._now(
                    MpsState.RESTARTING,
                    why=why,
                    failures=failures,
                    restarts=self.health.restarts + 1,
                    servers=(),
                    clients=(),
                )
                await asyncio.sleep(restart_delay(self.options, failures))
        finally:
            await self._stop()

    async def set_percent(self, percent: int) -> None:
        """Sets the most SMs of clients that come from now on, until the daemon is replaced.

        Raises:
            MpsError: It refused or did not answer.
        """
        await self._control.ask(f"set_default_active_thread_percentage {percent}")

    # ---- a life ------------------------------------------------------------------------------

    async def _live(self) -> str:
        """From a daemon's start to its end; why it ended or has to."""
        try:
            await self._begin()
        except (MpsError, OSError) as error:
            return f"it did not start: {error}"
        clock = asyncio.get_running_loop().time
        begun, sick = clock(), 0
        while sick < PATIENCE:
            try:
                await self._look()
                sick = 0
            except MpsError as error:
                sick += 1
                self._now(MpsState.SICK, why=str(error))
            if clock() - begun > self.options.steady_s and not sick:
                self._now(self.health.state, failures=0)
            if await self._ended(self.options.check_s):
                return f"it ended unasked ({self._exit})"
        return self.health.why

    async def _begin(self) -> None:
        """Takes over a daemon that is there, or starts one; then sets its limits."""
        self._pid = self._marked()
        if not await self._is_there(PATIENCE if self._pid else 1):
            await self._end()
            self._pid = self._control.start(self.options.log / "output")
            self._mark.write_text(f"{self._pid} {_started(self._pid)}\n")
            await self._answers()
        await self.set_percent(self.options.percent)
        for gpu, mib in sorted(self.options.memory_mib.items()):
            await self._control.ask(f"set_default_device_pinned_mem_limit {gpu} {mib}M")

    async def _is_there(self, times: int) -> bool:
        """Whether a daemon answers, asked up to so many times."""
        for _ in range(times):
            with contextlib.suppress(MpsError):
                await self._control.ask("get_server_list")
                return True
        return False

    async def _answers(self) -> None:
        """Waits until a new daemon answers."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self.options.answer_s
        while True:
            try:
                await self._control.ask("get_server_list")
            except MpsError as error:
                if await self._ended(0.05):
                    last = (self.options.log / "output").read_text(errors="replace")[-200:]
                    raise MpsError(f"{self._exit}: {last.strip()}") from None
                if clock() > deadline:
                    raise error from None
            else:
                return

    async def _look(self) -> None:
        servers = await self._control.pids("get_server_list")
        clients: list[int] = []
        for server in servers:
            # A server may end between the two questions; then its clients are gone as well.
            with contextlib.suppress(MpsError):
                clients += await self._control.pids(f"get_client_list {server}")
        self._now(MpsState.HEALTHY, servers=servers, clients=tuple(clients))

    async def _ended(self, within_s: float) -> bool:
        """Whether the daemon has ended, or does within that time."""
        loop = asyncio.get_running_loop()
        try:
            fd = os.pidfd_open(self._pid)
        except OSError:  # 0: one that was not started by an agent; only its answers tell
            await asyncio.sleep(within_s if not self._pid else 0)
            return bool(self._pid)
        ended = asyncio.Event()
        loop.add_reader(fd, ended.set)
        try:
            async with asyncio.timeout(within_s):
                await ended.wait()
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(fd)
            os.close(fd)
        self._exit = _reaped(self._pid)
        return True

    def _now(self, state: MpsState, **changes: object) -> None:
        self.health = msgspec.structs.replace(self.health, state=state, **changes)

    # ---- an end ------------------------------------------------------------------------------

    async def _stop(self) -> None:
        """Asks a daemon without clients to quit; kills it if it does not."""
        with contextlib.suppress(MpsError):
            await self._look()
            if self.health.clients:
                _log.warning("the MPS daemon is left running, for it has clients: %s", self.health)
                self._now(MpsState.STOPPED)
                return
            await self._control.ask("quit -t 1")
            await self._ended(self.options.answer_s)
        await self._end()
        self._now(MpsState.STOPPED, servers=(), clients=())

    async def _end(self) -> None:
        """Kills a daemon that was asked in vain, ours or one of a former agent."""
        if pid := self._marked():
            started = _started(pid)
            for number, looks in _ENDING:
                if _started(pid) != started:
                    break
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
                for _ in range(looks):  # it need not be our child
                    if _started(pid) != started:
                        break
                    await asyncio.sleep(0.02)
        if self._pid:
            _reaped(self._pid)
        self._mark.unlink(missing_ok=True)
        self._pid = 0

    def _marked(self) -> int:
        """The pid of the daemon that an agent started, if that process lives; else 0."""
        try:
            pid, started = map(int, self._mark.read_text().split())
        except (OSError, ValueError):
            return 0
        # The start time tells a reused pid apart.
        return pid if started and _started(pid) == started else 0


def _reaped(pid: int) -> str:
    """How a process ended, if it was our child; it must not stay a zombie."""
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, os.WNOHANG)[1])
    except ChildProcessError:
        return "it was not our child"
    return f"signal {-code}" if code < 0 else f"exit {code}"


def _started(pid: int) -> int:
    """When a process started, in clock ticks since boot; 0 where it is gone or a zombie."""
    try:
        # The name, in parentheses, may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])
