"""A replay from its first node to its report, and how it ended."""

import asyncio
import contextlib
import datetime as dt
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from alnair.kube.client import Client
from alnair.live.replay import scheduler
from alnair.live.replay.replayed_pods import Counts
from alnair.live.replay.report import ReplayReport, report
from alnair.live.replay.run import ReplayError, Run, StalledError
from alnair.model.plurals import counted
from alnair.scheduler.published.fragmentation import target_workload
from alnair.traces.arrivals import Arrival
from alnair.traces.openb import TraceNode
from alnair.traces.openb_files import Trace


class Settings(msgspec.Struct, frozen=True):
    """How to replay.

    Attributes:
        namespace: Where the pods live.
        profile: Their schedulerName.
        rate: Creations per second; None = as fast as the server takes them.
        in_flight: Creations under way at once; 1 keeps the order, and waits for each decision.
        patience: Seconds without a decision after which it is given up.
        timeout: Seconds after which it is given up in any case.
        fresh: Pods of an earlier replay are deleted first.
    """

    namespace: str = "openb"
    profile: str = "alnair-scheduler"
    rate: float | None = None
    in_flight: int = 32
    patience: float = 60.0
    timeout: float = float("inf")
    fresh: bool = False


class ReplayOutcome(msgspec.Struct, frozen=True):
    """How it ended: the report, and why it did not come to its end, if so."""

    report: ReplayReport
    problem: str = ""
    interrupted: bool = False


class Watcher(Protocol):
    """Is told how far a replay is."""

    def step(self, text: str) -> None:
        """A step begins."""

    def counts(self, counts: Counts) -> None:
        """So many pods are placed; called a few times a second."""


async def replay(
    client: Client,
    trace: Trace,
    arrivals: Sequence[Arrival],
    settings: Settings,
    *,
    create_nodes: Callable[[Client, Sequence[TraceNode], dt.datetime], Awaitable[object]],
    watcher: Watcher,
    stop: asyncio.Event,
) -> ReplayOutcome:
    """Replay until each pod has a node or a reason why it has none, or `stop` is set.

    Args:
        client: An open client.
        trace: The nodes, and the pods that fragmentation is measured against.
        arrivals: The pods, in order.
        settings: How.
        create_nodes: Makes the nodes that are not there yet; gets the time of day.
        watcher: Is told how far it is.
        stop: Ends it with what is known by then.

    Raises:
        KubeError: The cluster cannot be reached, or refuses.
    """
    since, deadline = time.time(), time.monotonic() + settings.timeout
    watcher.step(
        f"{counted(len(trace.nodes), 'node')} and {counted(len(arrivals), 'pod')} of "
        f"{settings.profile}"
    )
    has_nodes = await done_before(stop, create_nodes(client, trace.nodes, dt.datetime.now(dt.UTC)))
    run = Run(
        client,
        arrivals,
        namespace=settings.namespace,
        profile=settings.profile,
        models=sorted({node.model for node in trace.nodes if node.model}),
        rate=settings.rate,
        in_flight=settings.in_flight,
        patience=settings.patience,
    )
    problem, is_settled = "", False
    try:
        if has_nodes:
            await run.prepare(fresh=settings.fresh)
            is_settled = await run.run(stop, deadline, lambda: watcher.counts(run.ledger.counts()))
    except* ReplayError as group:
        error = _first(group)
        problem = str(error)
        if isinstance(error, StalledError):
            now = dt.datetime.now(dt.UTC)
            problem += f": {await scheduler.absence(client, settings.profile, now)}"
    found = await report(client, run.ledger, target_workload(trace.pods), settings.profile, since)
    return ReplayOutcome(found, problem, interrupted=not is_settled and not problem)


async def done_before(stop: asyncio.Event, work: Awaitable[object]) -> bool:
    """Do some work, or as much of it as is done when `stop` is set; return whether it was all."""
    doing = asyncio.ensure_future(work)
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((doing, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            doing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await doing
        return not doing.cancelled()
    finally:
        for one in (doing, stopping):
            one.cancel()


def _first(group: BaseExceptionGroup[ReplayError]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
