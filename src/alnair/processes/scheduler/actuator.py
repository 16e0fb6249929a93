"""Carries out the engine's actions, and tells it what became of them.

Bindings go first and have their own workers; what people read (events, conditions) never holds
them up. Nothing is sent after `may_act` says no: a leader that could not renew its lease must
assume that another one leads by now.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable

from alnair.kube.answered import answered
from alnair.kube.client import Client
from alnair.kube.errors import (
    ApiError,
    Conflict,
    ConnectionFailed,
    NotFound,
    ServerUnavailable,
    TooManyRequests,
)
from alnair.kube.objects import wire
from alnair.kube.objects.annotations import gang_plan, gpu_assignment
from alnair.kube.pod_groups.dialects import BY_API
from alnair.kube.resources import PODS
from alnair.kube.status import patch_pod_status
from alnair.live.engine_feed import Feed
from alnair.model import names
from alnair.model.action import Action, Bind, Evict, Nominate, Report, WritePlan
from alnair.model.workload import Pod
from alnair.processes.scheduler.evictor import Evictor
from alnair.processes.scheduler.reporter import Reporter
from alnair.processes.scheduler.storage_claims import ClaimWriter
from alnair.scheduler.engine import events
from alnair.scheduler.metric_counters import SchedulerCounters

_log = logging.getLogger(__name__)

#: Seconds between tries of the same request, doubling from the first to the last.
_FIRST_WAIT, _LAST_WAIT = 0.05, 1.0
#: Writes under way at once of plans of gangs, and of nominations.
_PLANNERS, _NOMINATORS = 4, 2
#: Seconds between looks at whether all is settled.
_SETTLING = 0.02


class Actuator:
    """Carries out actions with a bounded number of requests at once.

    Args:
        client: An open client.
        feed: Where results go.
        reporter: Tells people.
        may_act: Whether we still lead.
        calm: Kept set while no Binding waits or is under way.
        binders: Bindings under way at once.
        counters: Where Bindings are counted.
        has_crossed: Whether a pod's room is known to be taken by another scheduler's pod; its
            Binding is not sent then if it still waits for a worker.
    """

    def __init__(
        self,
        client: Client,
        feed: Feed,
        reporter: Reporter,
        may_act: Callable[[], bool],
        calm: asyncio.Event,
        binders: int = 32,
        counters: SchedulerCounters | None = None,
        has_crossed: Callable[[str], bool] = lambda _uid: False,
    ) -> None:
        self._client = client
        self._feed = feed
        self._reporter = reporter
        self._may_act = may_act
        self._calm = calm
        self._binders = binders
        self._counters = counters if counters is not None else SchedulerCounters()
        self._has_crossed = has_crossed
        self._unbound = 0
        self._unplanned = 0
        #: Bound, and perhaps not seen so yet, in the order of their answers.
        self._unseen: deque[Pod] = deque()
        self._binds: asyncio.Queue[Bind] = asyncio.Queue()
        self._storing: asyncio.Queue[list[Bind]] = asyncio.Queue()
        self._gathering: dict[str, list[Bind]] = {}
        self._plans: asyncio.Queue[WritePlan] = asyncio.Queue()
        self._nominations: asyncio.Queue[Nominate] = asyncio.Queue()
        self._evictor = Evictor(client, may_act, self._evicted)
        self._claims = ClaimWriter(client, feed, self._insist)

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._binders):
                    group.create_task(self._bind_all())
                # Plans, evictions and nominations have workers of their own: none waits for others.
                for _ in range(_PLANNERS):
                    group.create_task(self._write_plans())
                for _ in range(_NOMINATORS):
                    group.create_task(self._nominate_all())
                group.create_task(self._evictor.run())
                while True:
                    # Storage may take minutes: such pods wait beside the others, without limit.
                    batch = await self._storing.get()
                    self._gathering.pop(batch[0].together, None)
                    group.create_task(self._bind_with_storage(batch))
        finally:
            self._calm.set()

    async def settled(self) -> None:
        """Wait until Bindings and plans have their answers, and what is bound is seen to be so.

        Who decides next from what the feed knows takes no room twice then. Pods that wait for
        storage are not waited for: nothing is known of them until they are bound.
        """
        while True:
            if not (self._unbound or self._unplanned or self._awaits_sight()):
                return
            await asyncio.sleep(_SETTLING)

    def carry_out(self, action: Action) -> None:
        """Take an action on; its result becomes an event."""
        match action:
            case Bind():
                if action.claims or action.together:
                    self._store(action)
                else:
                    self._bind_soon(action)
            case Report():
                self._reporter.report(action)
            case WritePlan():
                self._unplanned += 1
                self._plans.put_nowait(action)
            case Nominate():
                self._nominations.put_nowait(action)
            case Evict():
                self._reporter.evicting(action)
                self._evictor.evict(action)

    def _bind_soon(self, bind: Bind) -> None:
        self._unbound += 1
        self._calm.clear()
        self._binds.put_nowait(bind)

    def _store(self, bind: Bind) -> None:
        # The engine hands over those that are bound together in one go.
        batch = self._gathering.get(bind.together)
        if batch is None:
            batch = []
            self._storing.put_nowait(batch)
            if bind.together:
                self._gathering[bind.together] = batch
        batch.append(bind)

    async def _bind_with_storage(self, batch: list[Bind]) -> None:
        errors = await asyncio.gather(*map(self._stored, batch))
        reason = next(filter(None, errors), "")
        for bind, error in zip(batch, errors, strict=True):
            if reason:
                text = error or f"another pod of its gang has no storage: {reason}"
                self._feed.put(events.BindDone(bind.pod.uid, text))
            else:
                self._bind_soon(bind)

    async def _stored(self, bind: Bind) -> str:
        start = time.perf_counter()
        error = await self._claims.ready(bind)
        status = "Error" if error else "Success"
        seconds = time.perf_counter() - start
        self._counters.ran("PreBind", status, bind.pod.scheduler, seconds)
        return error

    async def _bind_all(self) -> None:
        while True:
            bind = await self._binds.get()
            if self._has_crossed(bind.pod.uid):
                error = f"another scheduler placed a pod on {bind.node} before the Binding was sent"
            else:
                start = time.perf_counter()
                error = await self._bind(bind)
                self._counters.ran(
                    "Bind",
                    "Error" if error else "Success",
                    bind.pod.scheduler,
                    time.perf_counter() - start,
                )
            self._feed.put(events.BindDone(bind.pod.uid, error))
            if not error:
                self._unseen.append(bind.pod)
                self._awaits_sight()
            self._unbound -= 1
            if not self._unbound:
                self._calm.set()

    def _awaits_sight(self) -> bool:
        while self._unseen:
            found = self._feed.pod(self._unseen[0])
            if found is not None and not found.node:
                return True
            self._unseen.popleft()
        return False

    async def _bind(self, bind: Bind) -> str:
        pod = bind.pod
        annotations = None
        if bind.assignment:
            annotations = {names.GPU_ASSIGNMENT: gpu_assignment(bind.assignment, time.time())}

        async def send() -> None:
            try:
                await self._client.bind(pod.namespace, pod.name, pod.uid, bind.node, annotations)
            except Conflict:
                # Perhaps an earlier try of ours arrived and only its answer was lost.
                found = await self._client.get(PODS.typed(wire.PodWire), pod.name, pod.namespace)
                if found.metadata.uid != pod.uid or found.spec.node_name != bind.node:
                    raise

        return await self._insist(f"binding {pod.namespace}/{pod.name}", send)

    async def _insist(self, what: str, send: Callable[[], Awaitable[object]]) -> str:
        """Send until there is a definite answer; returns the error, empty if it is done.

        A request whose answer was lost may or may not have been carried out, so only the same
        request may follow it.
        """
        wait = _FIRST_WAIT
        while self._may_act():
            try:
                await answered(send())
            except (ConnectionFailed, ServerUnavailable, TooManyRequests) as error:
                _log.warning("%s: %s; trying again", what, error)
                await asyncio.sleep(wait)
                wait = min(2 * wait, _LAST_WAIT)
            except ApiError as error:
                return str(error)
            else:
                return ""
        # Who leads now finds out how it ended; we must not guess.
        return await asyncio.Future()

    async def _write_plans(self) -> None:
        while True:
            action = await self._plans.get()
            error = await self._write_plan(action)
            gang = action.gang
            self._unplanned -= 1
            self._feed.put(events.PlanDone(gang.namespace, gang.name, error))

    async def _nominate_all(self) -> None:
        while True:
            await self._nominate(await self._nominations.get())

    async def _write_plan(self, action: WritePlan) -> str:
        gang = action.gang
        text = gang_plan(action.plan, time.time()) if action.plan else None
        patch = {"metadata": {"annotations": {names.GANG_PLAN: text}}}

        async def send() -> None:
            await self._client.merge_patch(BY_API[gang.api], gang.name, patch, gang.namespace)

        return await self._insist(f"plan of {gang.namespace}/{gang.name}", send)

    def _evicted(self, uid: str, error: str) -> None:
        self._feed.put(events.EvictDone(uid, error))

    async def _nominate(self, action: Nominate) -> None:
        pod = action.pod

        async def send() -> None:
            status = {"nominatedNodeName": action.node or None}
            with contextlib.suppress(NotFound, Conflict):
                await patch_pod_status(self._client, pod.namespace, pod.name, pod.uid, status)

        # Nobody waits for it: should it be refused, only the next leader does not know.
        if error := await self._insist(f"nominating {pod.namespace}/{pod.name}", send):
            _log.warning("nominating %s/%s: %s", pod.namespace, pod.name, error)
