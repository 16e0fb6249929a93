"""Creates a trace's pods as real objects and follows them until each has a node or a verdict.

Whatever is there already is left alone, so a replay that was interrupted anywhere is continued by
running it again.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from alnair.kube.backoff import Backoff
from alnair.kube.client import Client
from alnair.kube.errors import AlreadyExists, ApiError, ConnectionFailed, NotFound
from alnair.kube.objects.trace_pods import SELECTOR, Asking, manifest
from alnair.kube.objects.wire import PodWire
from alnair.kube.resources import NAMESPACES, PODS, SERVICE_ACCOUNTS, Manifest
from alnair.live.list_and_watch import follow
from alnair.live.replay.replayed_pods import ReplayedPods
from alnair.model.plurals import counted
from alnair.traces.arrivals import Arrival

#: Without a pod created, bound or judged for so long (seconds), nothing more is expected.
QUIET: Final = 3.0
#: A namespace may take so long (seconds) to go before it can be made again.
_TERMINATION: Final = 120.0
#: A pod that is evicted again and again is not created for ever.
_MOST_LOSSES: Final = 20
_LOOK: Final = 0.25


class ReplayError(Exception):
    """The replay cannot go on; the message says why and what to do."""


class StalledError(ReplayError):
    """Pods wait, and nobody decides."""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    uid: str
    resource_version: str = ""
    deletion_timestamp: str | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    scheduler_name: str = ""


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""
    conditions: list[_Condition] = []


class _Pod(msgspec.Struct, frozen=True):
    """What is read of a pod."""

    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()

    def refusal(self) -> str:
        """Why it is pending; empty without a verdict."""
        for condition in self.status.conditions:
            if condition.type == "PodScheduled" and condition.reason == "Unschedulable":
                return condition.message or "no reason given"
        return ""


class Run:
    """One replay.

    Args:
        client: An open client.
        arrivals: The pods, in order.
        namespace: Where they live.
        profile: Their schedulerName.
        models: GPU models of the trace's nodes.
        rate: Creations per second; None = as fast as the server takes them.
        in_flight: Creations under way at once. With 1 each waits for the decision on the one
            before: a scheduler that learns of two at once may place the first one otherwise.
        patience: Seconds to wait for a decision before giving up.
    """

    def __init__(
        self,
        client: Client,
        arrivals: Sequence[Arrival],
        *,
        namespace: str,
        profile: str,
        models: Sequence[str],
        rate: float | None = None,
        in_flight: int = 32,
        patience: float = 60.0,
    ) -> None:
        self.ledger = ReplayedPods((arrival.name for arrival in arrivals), time.monotonic())
        self._arrivals = {arrival.name: arrival for arrival in arrivals}
        self._client = client
        self._namespace = namespace
        self._profile = profile
        self._models = models
        self._rate = rate
        self._in_flight = in_flight
        self._patience = patience
        self._news = asyncio.Event()

    async def prepare(self, *, fresh: bool) -> None:
        """Make the namespace; with `fresh`, delete the pods that a replay has left in it.

        Raises:
            ReplayError: The namespace does not go, or has pods of another replay.
        """
        await self._ensure_namespace()
        if fresh:
            await self._delete_all()
        else:
            await self._refuse_others()

    async def _ensure_namespace(self) -> None:
        name = self._namespace
        end = time.monotonic() + _TERMINATION
        with contextlib.suppress(NotFound):
            while (await self._client.get(NAMESPACES, name))["status"].get(
                "phase"
            ) == "Terminating":
                if time.monotonic() > end:
                    raise ReplayError(
                        f"namespace {name} is being deleted and does not go: see what is left "
                        f"in it (kubectl get all -n {name}), or choose another --namespace"
                    )
                await asyncio.sleep(1)
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        with contextlib.suppress(AlreadyExists):
            await self._client.create(NAMESPACES, made)
        # Pods are refused until it is there; the controller manager may take its time.
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        with contextlib.suppress(AlreadyExists):
            await self._client.create(SERVICE_ACCOUNTS, account, name)

    async def _delete_all(self) -> None:
        while await self._has_pods():
            # A long list takes longer than a request may: what is left is deleted by the next.
            with contextlib.suppress(ConnectionFailed):
                await self._client.delete_collection(
                    PODS, self._namespace, label_selector=SELECTOR, grace_seconds=0
                )
            await asyncio.sleep(0.1)

    async def _refuse_others(self) -> None:
        """Go on only where the same replay ended: lists, draws and copies share their names."""
        asking = Asking()
        pages = self._client.pages(
            PODS.typed(PodWire), self._namespace, label_selector=SELECTOR, page_size=500
        )
        async with contextlib.aclosing(pages):
            async for page in pages:
                for pod in page:
                    name = pod.metadata.name
                    arrival = self._arrivals.get(name)
                    if arrival is None or pod.metadata.deletion_timestamp:
                        continue
                    if asking.of(pod) != asking.of_manifest(self._manifest(arrival)):
                        raise ReplayError(
                            f"pod {self._namespace}/{name} is there from another replay and asks "
                            "for something else: delete the old pods with --fresh, or choose "
                            "another --namespace"
                        )

    def _manifest(self, arrival: Arrival) -> Manifest:
        return manifest(arrival, self._namespace, self._profile, self._models)

    async def _has_pods(self) -> bool:
        pages = self._client.pages(
            PODS.typed(_Pod), self._namespace, label_selector=SELECTOR, page_size=1
        )
        async with contextlib.aclosing(pages):
            async for page in pages:
                return len(page) > 0
        return False

    async def run(self, stop: asyncio.Event, deadline: float, show: Callable[[], None]) -> bool:
        """Create and follow until all is settled.

        Args:
            stop: Set to end at once.
            deadline: When to give up (seconds, monotonic).
            show: Called a few times a second.

        Returns:
            Whether all is settled; else it was stopped.

        Raises:
            StalledError: Nobody decides, or the deadline has passed.
            ReplayError: A pod cannot be created.
        """
        known = asyncio.Event()
        follower = asyncio.create_task(self._follow(known))
        creator = asyncio.create_task(self._create_all(known))
        stopped = asyncio.ensure_future(stop.wait())
        tasks: list[asyncio.Task[None]] = [follower, creator]
        try:
            while not stopped.done():
                waiting = [task for task in tasks if not task.done()]
                await asyncio.wait(
                    [*waiting, stopped], timeout=_LOOK, return_when=asyncio.FIRST_COMPLETED
                )
                for task in tasks:
                    if task.done():
                        task.result()
                show()
                if creator.done() and self._is_settled():
                    return True
                self._check_patience(deadline)
                if creator.done() and self.ledger.gone:
                    creator = asyncio.create_task(self._create_again())
                    tasks[1] = creator
            return False
        finally:
            for ending in (*tasks, stopped):
                ending.cancel()
            await asyncio.gather(*tasks, stopped, return_exceptions=True)

    def _is_settled(self) -> bool:
        counts, now = self.ledger.counts(), time.monotonic()
        if not counts.is_settled or self.ledger.gone:
            return False
        # A pod that was refused may still be placed when the next node or pod is looked at.
        return not counts.refused or now - self.ledger.moved > QUIET

    def _check_patience(self, deadline: float) -> None:
        counts, now = self.ledger.counts(), time.monotonic()
        if counts.undecided and now - self.ledger.waiting_since > self._patience:
            raise StalledError(
                f"{counted(counts.undecided, 'pod')} of {self._profile} "
                f"{'has' if counts.undecided == 1 else 'have'} had neither a node nor a reason "
                f"for {self._patience:g} s"
            )
        pause = 1 / self._rate if self._rate else 0.0
        if counts.there < counts.pods and now - self.ledger.moved > self._patience + pause:
            raise StalledError(
                f"no pod could be created for {self._patience:g} s, {counts.there} of "
                f"{counts.pods} are there"
            )
        if now > deadline:
            raise StalledError(
                f"not decided: {counted(counts.pods - counts.placed - counts.refused, 'pod')}"
            )

    async def _follow(self, known: asyncio.Event) -> None:
        ledger = self.ledger
        pods = follow(
            self._client, PODS.typed(_Pod), namespace=self._namespace, label_selector=SELECTOR
        )
        async with contextlib.aclosing(pods):
            async for batch in pods:
                listed = batch.listed is not None
                if batch.listed is not None:
                    ledger.listed({pod.metadata.uid for pod in batch.listed}, batch.arrived)
                for pod in batch.listed or ():
                    self._see(pod, batch.arrived, listed=not known.is_set())
                for event in batch.events:
                    meta = event.object.metadata
                    if event.type == "DELETED":
                        ledger.deleted(meta.name, meta.uid, batch.arrived)
                    else:
                        self._see(event.object, batch.arrived, listed=listed)
                known.set()
                self._news.set()

    def _see(self, pod: _Pod, now: float, *, listed: bool) -> None:
        meta = pod.metadata
        if meta.name in self._arrivals and pod.spec.scheduler_name != self._profile:
            raise ReplayError(
                f"pod {self._namespace}/{meta.name} is there from a replay for scheduler "
                f"{pod.spec.scheduler_name}, not {self._profile}: delete the old pods with --fresh"
            )
        self.ledger.seen(meta.name, meta.uid, pod.spec.node_name, pod.refusal(), now, listed=listed)

    async def _create_all(self, known: asyncio.Event) -> None:
        await known.wait()
        names = iter(self.ledger.missing())
        begun, number = time.monotonic(), 0

        async def work(names: Iterator[str]) -> None:
            nonlocal number
            for name in names:
                due = begun + number / self._rate if self._rate else 0.0
                number += 1
                wait = due - time.monotonic()
                if wait > 0:
                    await asyncio.sleep(wait)
                await self._create(name)
                if self._in_flight == 1:
                    await self._decision(name)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._in_flight):
                tasks.create_task(work(names))

    async def _decision(self, name: str) -> None:
        """Wait until a pod has a node, a verdict, or is gone."""
        entry = self.ledger.entries[name]
        lost = entry.lost
        while not (entry.node or entry.refusal or entry.lost > lost):
            self._news.clear()
            await self._news.wait()

    async def _create_again(self) -> None:
        """Create the pods that have gone, as the controller that owns a pod would."""
        gone, self.ledger.gone = self.ledger.gone, []
        for name in gone:
            entry = self.ledger.entries[name]
            if entry.lost > _MOST_LOSSES:
                raise ReplayError(
                    f"pod {name} was deleted {counted(entry.lost, 'time')}: see who does it "
                    f"(kubectl get events -n {self._namespace})"
                )
            if not entry.there:
                await self._create(name)

    async def _create(self, name: str) -> None:
        body = self._manifest(self._arrivals[name])
        backoff = Backoff(first=0.1, most=2.0)
        while True:
            try:
                await self._client.create(PODS.typed(_Pod), body)
            except AlreadyExists:
                return
            except (ConnectionFailed, ApiError) as error:
                if isinstance(error, ApiError) and not error.is_transient:
                    raise ReplayError(
                        f"pod {self._namespace}/{name} cannot be created: {error}"
                    ) from error
                await asyncio.sleep(backoff.next())
            else:
                self.ledger.acknowledged(name, time.monotonic())
                return
