"""Plans the sizes of all training jobs, with the scheduler's own code as the room.

An engine follows what the API server says and what the leading scheduler holds for others; plans
are made on its books, in a thread beside the operator, when something changed.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from alnair.elastic import fair_plan
from alnair.elastic.fair_plan import PlanOptions
from alnair.kube.client import Client
from alnair.live.following import ClusterFollower
from alnair.model.api_types import Holdings
from alnair.model.elastic_plan import Plan, SizeChange
from alnair.processes.controller.elastic.cache import JobCache
from alnair.processes.controller.elastic.children import JobKey
from alnair.processes.controller.elastic.demands import Demands, Unplaced
from alnair.processes.controller.elastic.priorities import Priorities
from alnair.processes.controller.elastic.waiting import WaitingJobs
from alnair.scheduler.advice.worker_room import worker_room
from alnair.scheduler.engine.view import View
from alnair.scheduler.metric_counters import Histogram
from alnair.scheduler.profiles import profiles

_log = logging.getLogger(__name__)

#: Times as long as a plan took, between two plans: so that plans take a part of the time only; and
#: while a new job, or a user's new wish, waits for one.
_SHARE: Final = 5.0
_SHARE_URGENT: Final = 1.0
#: Seconds between two plans at least, and while only other pods come and go.
_GATHER: Final = 0.02
_OTHERS: Final = 1.0
#: Seconds after a plan that failed.
_FAILED: Final = 5.0

#: Told of a job that shall have another size, and of the change unless a plan found it so.
Changed = Callable[[JobKey, SizeChange | None], None]


class Planner:
    """Plans again and again while `run` runs.

    Args:
        client: An open client.
        cache: Of the jobs.
        changed: Told of jobs that shall have another size.

    Attributes:
        seconds: How long each plan took.
        failures: Plans that could not be made.
        resizes: Changes of sizes by reason.
        waiting: Why jobs find no room.
    """

    def __init__(self, client: Client, cache: JobCache, changed: Changed) -> None:
        self._client = client
        self._cache = cache
        self._changed = changed
        self._news = asyncio.Event()
        self._urgent = asyncio.Event()
        self._priorities = Priorities(client, self._all_anew)
        self._demands = Demands(cache, self._priorities.of)
        self.seconds = Histogram((0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0))
        self.failures = 0
        self.resizes: Counter[str] = Counter()
        self.waiting = WaitingJobs()

    def mark(self, key: JobKey) -> None:
        """Plan soon: a job changed."""
        if self._demands.mark(key):
            self._urgent.set()
        self._news.set()

    def size(self, key: JobKey) -> int | None:
        """Return how many workers a job shall have; None if no plan has asked about it."""
        return self._demands.size(key)

    def unreadable(self, key: JobKey) -> bool:
        """Whether a job has no place in plans, as its workers' pod is none."""
        return self._demands.unreadable(key)

    def unplaced(self) -> list[Unplaced]:
        """Return the jobs that have no pods, as they wait for room."""
        return self._demands.unplaced()

    async def run(self) -> None:
        """Plan until cancelled."""
        await self._cache.any.wait()
        # What pods are spread by, by default, is only preferred: it keeps nobody from a node.
        follower = ClusterFollower(self._client, profiles, kinds=())
        self._demands = Demands(self._cache, self._priorities.of)
        self._demands.mark_all()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._priorities.run())
            group.create_task(follower.run())
            await self._priorities.synced()
            await follower.synced()
            group.create_task(self._hear(follower))
            again: float | None = 0.0
            while True:
                await self._until(again)
                begin = time.monotonic()
                try:
                    again = await self._plan(follower)
                except (LookupError, RuntimeError, TypeError, ValueError):
                    # Jobs keep their sizes, and all else that the controller does goes on.
                    _log.exception("no plan could be made; the next try is in %g s", _FAILED)
                    self.failures += 1
                    again = time.time() + _FAILED
                    await asyncio.sleep(_FAILED)
                await self._rest(time.monotonic() - begin)

    async def _hear(self, follower: ClusterFollower) -> None:
        """Plan when others come or go, too."""
        while True:
            await follower.news.wait()
            follower.news.clear()
            self._news.set()
            await asyncio.sleep(_OTHERS)

    async def _until(self, again: float | None) -> None:
        """Wait for news, or until a time."""
        patience = None if again is None else max(0.0, again - time.time())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._news.wait()
        self._news.clear()
        self._urgent.clear()

    async def _rest(self, took: float) -> None:
        """Leave time to others, less if somebody waits for a plan."""
        await asyncio.sleep(max(_GATHER, _SHARE_URGENT * took))
        with contextlib.suppress(TimeoutError):
            rest = max(_OTHERS / 4, (_SHARE - _SHARE_URGENT) * took)
            async with asyncio.timeout(rest):
                await self._urgent.wait()

    def _all_anew(self) -> None:
        self._demands.mark_all()
        self._news.set()

    async def _plan(self, follower: ClusterFollower) -> float | None:
        """Plan once; returns when to plan again though nothing has changed."""
        now = time.time()
        asking = self._demands.now()
        for key in self._demands.left_out():
            self._changed(key, None)
        if not asking:
            return None

        def planned(view: View, held: Holdings) -> tuple[Plan, list[JobKey]]:
            seen = [one.seen_in(view) for _, one in asking]
            templates = {demand.key: template for demand, template in seen}
            with worker_room(view, templates, now, held.quota) as room:
                demands = [demand for demand, _ in seen]
                plan = fair_plan.plan(demands, room.cluster(), now, PlanOptions())
            waiting = [
                (key, templates[demand.key].pod, demand.least)
                for (key, _), demand in zip(asking, demands, strict=True)
                if not plan.sizes[demand.key]
            ]
            return plan, self.waiting.ask(view, waiting, now)

        begin = time.perf_counter()
        plan, unlike = await follower.ask(planned)
        self.seconds.observe(time.perf_counter() - begin)
        changes = {change.key: change for change in plan.changes}
        for key, one in asking:
            change = changes.get(one.demand.key)
            size = plan.sizes[one.demand.key]
            if self._demands.resize(key, size, now if change else None):
                self._changed(key, change)
            if change is not None:
                self.resizes[change.reason] += 1
                _log.info(
                    "%s: %d -> %d workers, %s",
                    change.key,
                    change.before,
                    change.after,
                    change.message,
                )
        for key in unlike:
            self._changed(key, None)
        return plan.again
