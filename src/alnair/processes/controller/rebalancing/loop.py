"""The loop: looks now and then for moves that help, and carries them out a few at a time.

What it is about to do stands in its memory before it is done, and each pass does again what that
says: so whoever leads next goes on, and no pod is moved twice.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec
from prometheus_client.metrics_core import Metric

from alnair.kube.client import Client
from alnair.kube.errors import AlreadyExists, Conflict, KubeError
from alnair.kube.events import EventRecorder, ObjectReference
from alnair.kube.objects.wire import ObjectMeta
from alnair.kube.resources import PODS
from alnair.live.following import ClusterFollower
from alnair.live.training.finding import RESOURCES
from alnair.model import durations, names
from alnair.model.rebalancing import PlannedMove, RebalanceBounds, RebalancePlan
from alnair.processes.controller.elastic.demands import Unplaced
from alnair.processes.controller.rebalancing import unplaced_jobs, words
from alnair.processes.controller.rebalancing.cordons import Cordons
from alnair.processes.controller.rebalancing.figures import RebalanceFigures
from alnair.processes.controller.rebalancing.memory_store import MemoryStore
from alnair.processes.controller.rebalancing.moving import Moving
from alnair.scheduler.advice.rebalance_round import Round, rebalance_round
from alnair.scheduler.profiles import profiles

_log = logging.getLogger(__name__)

#: Seconds between passes while pods move, after a pass that failed, and to read the cluster.
_PASS: Final = 1.0
_RETRY: Final = 5.0
_READ: Final = 60.0
_MOVED: Final = "Rebalanced"
_HELPED: Final = "RoomIsMade"
_FAILED: Final = "RebalancingFailed"


class _Waiting(msgspec.Struct):
    metadata: ObjectMeta


class Rebalancing:
    """Rebalances while `run_writes` runs.

    Args:
        client: An open client.
        bounds: What keeps it small.
        unplaced: Returns the training jobs that wait and have no pods yet.
        now: Seconds since the epoch.
    """

    def __init__(
        self,
        client: Client,
        bounds: RebalanceBounds,
        unplaced: Callable[[], Sequence[Unplaced]] = tuple,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._bounds = bounds
        self._unplaced = unplaced
        self._now = now
        self._recorder = EventRecorder(client, names.CONTROLLER)
        self._store = MemoryStore(client)
        self._cordons = Cordons(client)
        self._moving = Moving(client, bounds.timeout, now)
        self._figures = RebalanceFigures()
        self._leads = False

    def metrics(self) -> Iterator[Metric]:
        """Return what is to be told at /metrics."""
        plan = self._store.memory.plan
        under_way = len(plan.under_way) if plan is not None else 0
        return self._figures.metrics(under_way if self._leads else None)

    async def run_writes(self) -> None:
        """Rebalance until cancelled; goes on where whoever led before has ended."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.run())
            self._leads, has_read = True, False
            try:
                while True:
                    try:
                        if not has_read:
                            await self._store.read()
                            await self._cordons.release_others(self._store.memory.plan)
                            has_read = True
                        rest = await self._pass()
                    except (Conflict, AlreadyExists) as error:
                        _log.warning("somebody else rebalances, too: %s", error)
                        has_read, rest = False, _RETRY
                    except KubeError as error:
                        _log.warning("rebalancing: %s", error)
                        has_read, rest = False, _RETRY
                    except TimeoutError:
                        # It is too much for who answers: ask as seldom as ever.
                        _log.warning("rebalancing: the cluster was not read in %g s", _READ)
                        self._figures.rounds["failed"] += 1
                        rest = self._bounds.every
                    except (LookupError, RuntimeError, TypeError, ValueError):
                        # All else that the controller does goes on.
                        _log.exception("rebalancing failed; the next try is in one interval")
                        self._figures.rounds["failed"] += 1
                        has_read, rest = False, self._bounds.every
                    await asyncio.sleep(rest)
            finally:
                self._leads = False

    async def _pass(self) -> float:
        """Look for moves, or push on those there are; returns the seconds until the next pass."""
        if self._store.memory.plan is not None:
            return await self._go_on(self._store.memory.plan)
        wait = self._store.memory.planned_at() + self._bounds.every - self._now()
        if wait > 0:
            return wait
        found = await self._look()
        self._figures.last = self._now()
        if found is None:
            self._figures.rounds["nobody-waits"] += 1
            return self._bounds.every
        for one in found.declined:
            self._figures.rounds[one.reason] += 1
            _log.info("nothing is moved for %s: %s", one.unit, one.message)
        if found.plan is None:
            return self._bounds.every
        await self._take_up(found.plan)
        return 0.0

    async def _look(self) -> Round | None:
        """Return what a round finds; None if nobody waits for a node."""
        waiting = await self._client.list(
            PODS.typed(_Waiting), field_selector="spec.nodeName=,status.phase=Pending"
        )
        jobs = unplaced_jobs.first(self._unplaced())
        if not (waiting.items or jobs):
            return None
        # What pods are spread by, by default, is only preferred: it keeps nobody from a node.
        follower = ClusterFollower(self._client, profiles, kinds=())
        following = asyncio.create_task(follower.run())
        try:
            async with asyncio.timeout(_READ):
                await follower.synced()
            begin, now = time.perf_counter(), self._now()
            past = self._store.memory.past
            found = await follower.ask(
                lambda view, _: rebalance_round(view, self._bounds, past, now),
                [event for job in jobs for event in unplaced_jobs.as_if_made(job)],
            )
            self._figures.seconds.observe(time.perf_counter() - begin)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        return unplaced_jobs.told_of(found, jobs)

    async def _take_up(self, plan: RebalancePlan) -> None:
        await self._store.write(msgspec.structs.replace(self._store.memory, plan=plan))
        self._figures.rounds["plan"] += 1
        said = words.planned(plan)
        _log.info("%s", said)
        namespace, name, uid = plan.pod
        about = ObjectReference("Pod", name, namespace, uid)
        if plan.job:
            api = RESOURCES[plan.job].api_version
            about = ObjectReference(plan.job, name, namespace, uid, api)
        self._recorder.record(about, _HELPED, said)

    async def _go_on(self, plan: RebalancePlan) -> float:
        """Push a plan on: first what has begun, then the next moves, and in the end the cordons."""
        patience = self._bounds.timeout * (len(plan.moves) + 1)
        if self._now() > plan.at + patience:
            # Nobody led for long, or something fails again and again: no cordon stays for it.
            await self._end(plan, f"given up after {durations.span(self._now() - plan.at)}")
            await self._cordons.release_others(None)
            return 0.0
        await self._cordons.keep(plan)
        plan = await self._pushed(plan)
        while (index := plan.next_move(self._bounds.at_once)) is not None:
            if not await self._moving.waits(plan):
                plan = await self._spared(plan)
                break
            begun = await self._moving.begun(plan, index)
            plan = await self._noted(plan, begun)
            if any(move.stage == "begun" for move in begun.values()):
                await self._cordons.keep(plan)
                self._tell_begun(plan, begun[index])
                plan = await self._pushed(plan)
        await self._cordons.keep(plan)
        if not plan.over:
            return _PASS
        spared = any(move.stage == "spared" for move in plan.moves)
        await self._end(plan, "broken off" if plan.broken or spared else "")
        return 0.0

    async def _spared(self, plan: RebalancePlan) -> RebalancePlan:
        """Begin no further move: who waited has a node, or is gone."""
        _log.info("%s waits no more: nobody else is moved for it", plan.name)
        return await self._noted(
            plan,
            {
                index: msgspec.structs.replace(move, stage="spared")
                for index, move in enumerate(plan.moves)
                if move.stage == "waits"
            },
        )

    async def _end(self, plan: RebalancePlan, trouble: str) -> None:
        await self._store.write(self._store.memory.ended(self._bounds, self._now()))
        self._figures.ended(plan, broken=bool(trouble))
        _log.info("the moves for %s are %s", plan.name, trouble or "done")

    async def _pushed(self, plan: RebalancePlan) -> RebalancePlan:
        """Do again what is to be done about all moves under way."""
        changes: dict[int, PlannedMove] = {}
        for mover in sorted(plan.under_way):
            indices = [
                index
                for index, move in enumerate(plan.moves)
                if move.stage == "begun" and move.mover == mover
            ]
            stage = await self._moving.push(plan.moves[indices[0]], len(indices))
            if stage != "begun":
                for index in indices:
                    changes[index] = msgspec.structs.replace(plan.moves[index], stage=stage)
        return await self._noted(plan, changes) if changes else plan

    async def _noted(self, plan: RebalancePlan, changes: dict[int, PlannedMove]) -> RebalancePlan:
        """Write how far moves are."""
        plan = plan.replaced(changes)
        await self._store.write(msgspec.structs.replace(self._store.memory, plan=plan))
        for move in changes.values():
            if move.over:
                self._figures.moved(move)
                if move.stage in ("refused", "late"):
                    self._tell_failed(move)
        return plan

    def _tell_begun(self, plan: RebalancePlan, move: PlannedMove) -> None:
        self._recorder.record(_about(move), _MOVED, words.begun(plan, move))

    def _tell_failed(self, move: PlannedMove) -> None:
        said = words.failed(move, self._now() - move.begun)
        self._recorder.record(_about(move), _FAILED, said, "Warning")


def _about(move: PlannedMove) -> ObjectReference:
    return ObjectReference("Pod", move.name, move.namespace, move.uid)
