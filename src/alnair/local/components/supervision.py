"""One process of a cluster, had running and well: started, kept, or replaced."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import psutil

from alnair.local.components import processes
from alnair.local.components.health import NO_ANSWER
from alnair.local.errors import LocalClusterError
from alnair.local.layout import Layout
from alnair.local.report import ProgressReport

_READY_SECONDS = 60.0
#: Time for a process that is alive but not well before a start replaces it.
_PATIENCE_SECONDS = 10.0
#: Time for a process to answer once: one that stands still would be waited for for ever.
_ANSWER_SECONDS = 10.0


@dataclass(frozen=True)
class Supervised:
    """How a process is to run.

    Attributes:
        name: Of the component.
        command: Program and arguments.
        digest: Tells this command, and all that it reads at its start, from others.
        environment: Without the marks.
        probe: Asks it once; None when it is well, otherwise what it says.
        stop_seconds: Time for a clean stop before it is killed.
        enter: The command that enters the namespaces in which it runs; (): those of this process.
        answer_seconds: Time for one answer to the probe.
    """

    name: str
    command: list[str]
    digest: str
    environment: Mapping[str, str]
    probe: Callable[[], Awaitable[str | None]]
    stop_seconds: float = 5.0
    enter: tuple[str, ...] = ()
    answer_seconds: float = _ANSWER_SECONDS

    async def asked(self) -> str | None:
        """Returns what the probe does, or that there was no answer in time."""
        try:
            async with asyncio.timeout(self.answer_seconds):
                return await self.probe()
        except TimeoutError:
            return f"{NO_ANSWER} {self.answer_seconds:g} s"


async def ensure(
    wanted: Supervised,
    layout: Layout,
    report: ProgressReport,
    patience: float = _PATIENCE_SECONDS,
) -> None:
    """Has it running and well; does nothing when it is.

    Args:
        wanted: The process.
        layout: Its cluster.
        report: Told what is done.
        patience: Seconds for one that is alive but not well before it is replaced.

    Raises:
        LocalClusterError: It ended, or is not well in time.
    """
    name = wanted.name
    present = processes.components(processes.find(layout.folder)).get(name)
    if present is not None and present.command == wanted.digest:
        with contextlib.suppress(LocalClusterError):
            if await wait_ready(wanted, layout, present.process, patience):
                return
            report.step(f"{name} runs but is not well: restarting it")
            await stop(layout, name, signal.SIGKILL)
    await stop(layout, name, signal.SIGTERM, wanted.stop_seconds)
    report.step(f"starting {name}")
    log = layout.log(name)
    process = processes.spawn(
        layout.folder,
        name,
        wanted.command,
        wanted.digest,
        log,
        wanted.environment,
        wanted.enter,
    )
    if process is None:
        raise LocalClusterError(
            f"{name} ended at once: {processes.last_words(log)} (all of it is in {log})"
        )
    if not await wait_ready(wanted, layout, process, _READY_SECONDS):
        said = await wanted.asked()
        raise LocalClusterError(
            f"{name} is not ready after {_READY_SECONDS:g} s ({said}):"
            f" look into {log}, then run the same command again"
        )


async def stop(
    layout: Layout, name: str, number: int = signal.SIGTERM, seconds: float = 5.0
) -> None:
    """Ends a component by a signal, and kills what lives after so many seconds."""
    found = [
        running.process for running in processes.find(layout.folder) if running.component == name
    ]
    await processes.stop(found, number, seconds)


async def wait_ready(
    wanted: Supervised, layout: Layout, process: psutil.Process, deadline: float
) -> bool:
    """Waits until a component is well.

    Args:
        wanted: The component.
        layout: Its cluster.
        process: The process that has to come up.
        deadline: Seconds to wait.

    Returns:
        Whether it is; False when it still was not at the deadline.

    Raises:
        LocalClusterError: The process ended.
    """
    until = time.monotonic() + deadline
    pause = 0.02
    while await wanted.asked() is not None:
        if not processes.is_alive(process):
            log = layout.log(wanted.name)
            raise LocalClusterError(
                f"{wanted.name} stopped while it was starting: {processes.last_words(log)}"
                f" (all of it is in {log})"
            )
        if time.monotonic() > until:
            return False
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.25)
    return True
