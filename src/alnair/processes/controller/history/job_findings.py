"""While jobs run: what each of them does as a whole, and which of its ranks holds up the others.

Told in the history, from where the owner's annotation comes, in events of the pods, and in figures.
What was found outlives the pods, and whoever leads next goes on from it.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec
from prometheus_client.metrics_core import Metric
from sqlalchemy import Connection

from alnair.history.database import queries, writing
from alnair.history.database.addresses import HistoryError
from alnair.kube.client import Client
from alnair.kube.events import EventRecorder, ObjectReference
from alnair.kube.objects.annotations import rfc3339
from alnair.kube.timestamps import timestamp
from alnair.model import names
from alnair.model.api_types import JobWorkload, SlowRank, Workload
from alnair.model.usage import PodUsage
from alnair.processes.controller.history.seen import PodSeen
from alnair.processes.controller.history.store import Store
from alnair.profiler.job_ranks import JobRanks
from alnair.profiler.job_workload import Member, job_workload
from alnair.serving.exposition import gauge

#: Seconds between looks.
EVERY: Final = 5.0
#: Seconds between writes of one job where nothing began or ended, and jobs in one transaction.
LEAST: Final = 60.0
AT_ONCE: Final = 200
#: The kind of finding.
KIND: Final = "workload"
#: Reasons of the events.
SLOW: Final = "Straggler"
CAUGHT_UP: Final = "StragglerCaughtUp"
#: What is told at once, as far as it differs.
_TOLD: Final = ("pods", "type", "framework", "phase", "bottleneck", "idle")

_log = logging.getLogger(__name__)


class _Job(msgspec.Struct):
    """A job that runs."""

    ranks: JobRanks
    found: JobWorkload | None = None
    written: JobWorkload | None = None
    written_at: float = 0.0


class JobFindings:
    """Looks, and tells.

    Args:
        client: An open client.
        store: Where to write.
        pods: Those that are there.
        job_of: Uid of a pod → of its job; None while that is not written.
        every: Seconds between looks.
        now: Seconds since the epoch.
    """

    def __init__(
        self,
        client: Client,
        store: Store,
        pods: Callable[[], Mapping[tuple[str, str], PodSeen]],
        job_of: Callable[[str], str | None],
        *,
        every: float = EVERY,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._pods = pods
        self._job_of = job_of
        self._every = every
        self._now = now
        self._recorder = EventRecorder(client, names.CONTROLLER)
        self._jobs: dict[str, _Job] = {}
        #: Uid of a pod → what its agent said to us: newer than what is written on the pod.
        self._heard: dict[str, Workload] = {}
        self._said = ""

    def heard(self, running: Iterable[PodUsage]) -> None:
        """Take in what agents say of pods that run."""
        self._heard |= {one.uid: one.workload for one in running if one.workload is not None}

    async def run(self) -> None:
        """Look and tell, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.run())
            try:
                while True:
                    await self.look()
                    await asyncio.sleep(self._every)
            finally:
                self._jobs.clear()

    async def look(self) -> None:
        """Look at all jobs once, and write what is news."""
        try:
            await self._look()
        except HistoryError as error:
            if str(error) != self._said:  # once, and not at every look
                _log.warning("findings are not written: %s", error)
            self._said = str(error)
        else:
            self._said = ""

    async def _look(self) -> None:
        now = self._now()
        members: dict[str, list[PodSeen]] = defaultdict(list)
        pods = {pod.record.uid: pod for pod in self._pods().values() if not pod.record.phase}
        self._heard = {uid: heard for uid, heard in self._heard.items() if uid in pods}
        for uid, pod in pods.items():
            job = self._job_of(uid)
            if job is not None and (pod.workload is not None or uid in self._heard):
                members[job].append(pod)
        await self._begin([uid for uid in members if uid not in self._jobs])
        self._jobs = {uid: self._jobs[uid] for uid in members}
        for uid, of_job in members.items():
            self._take(self._jobs[uid], of_job, now)
        await self._write(now)

    async def _begin(self, uids: list[str]) -> None:
        """Take up jobs where whoever looked before left them."""
        if not uids:
            return
        known = await self._store.once(lambda one: queries.findings(one, uids, KIND))
        for uid in uids:
            try:
                before = msgspec.convert(known[uid], JobWorkload) if uid in known else None
            except msgspec.ValidationError:
                before = None  # of another version; it is written anew
            slow = before.stragglers if before is not None else ()
            self._jobs[uid] = _Job(JobRanks(slow), written=before)

    def _take(self, job: _Job, pods: list[PodSeen], now: float) -> None:
        known = [self._member(pod) for pod in pods]
        before = {one.pod: one for one in job.ranks.slow}
        job.ranks.take(known, now, rfc3339(now))
        job.found = job_workload(known, now, rfc3339(now), job.ranks.slow)
        after = {one.pod: one for one in job.ranks.slow}
        for pod in pods:
            name = pod.record.name
            if name in after and name not in before:
                self._recorder.record(_reference(pod), SLOW, _slow(after[name]), "Warning")
            elif name in before and name not in after:
                self._recorder.record(_reference(pod), CAUGHT_UP, "it is as fast as the others")

    def _member(self, pod: PodSeen) -> Member:
        told = [one for one in (pod.workload, self._heard.get(pod.record.uid)) if one is not None]
        newest = max(told, key=lambda one: timestamp(one.t))
        return Member(pod.record.name, timestamp(newest.t), newest, pod.rank, pod.role)

    async def _write(self, now: float) -> None:
        due = [
            (job.written_at, uid)
            for uid, job in self._jobs.items()
            if job.found is not None and is_news(job.written, job.found, now)
        ]
        # Those that have waited longest; the others have their turn at the next look.
        chosen = {uid: self._jobs[uid] for _, uid in sorted(due)[:AT_ONCE]}
        if not chosen:
            return

        def put(connection: Connection) -> None:
            for uid, job in chosen.items():
                document = msgspec.to_builtins(job.found)
                # By the clock of the transaction: others look for what has changed since.
                writing.put_finding(connection, uid, KIND, document, self._now())

        await self._store.once(put)
        for job in chosen.values():
            job.written, job.written_at = job.found, now

    def metrics(self) -> Iterator[Metric]:
        """Return what jobs do; of lone pods their agents tell."""
        shown = [
            ({"namespace": pod.record.namespace, "job": pod.record.job, "uid": uid}, job.found)
            for uid, (pod, job) in self._shown().items()
            if job.found is not None
        ]
        yield gauge(
            "alnair_job_progress_ratio",
            "Part that its last pod has done.",
            ((labels, one.progress) for labels, one in shown if one.progress is not None),
        )
        yield gauge(
            "alnair_job_remaining_seconds",
            "Time until its last pod is done, as it was foreseen at the last look.",
            ((labels, one.eta_s) for labels, one in shown if one.eta_s is not None),
        )
        yield gauge(
            "alnair_job_straggler_slowdown_ratio",
            "Of a rank that holds up the others: how many times as long its steps take.",
            (
                ({**labels, "pod": slow.pod, "rank": _text(slow.rank)}, slow.slowdown)
                for labels, one in shown
                for slow in one.stragglers
            ),
        )

    def _shown(self) -> dict[str, tuple[PodSeen, _Job]]:
        found: dict[str, tuple[PodSeen, _Job]] = {}
        for pod in self._pods().values():
            uid = self._job_of(pod.record.uid)
            if uid in self._jobs and uid != pod.record.uid and uid is not None:
                found.setdefault(uid, (pod, self._jobs[uid]))
        return found


def is_news(old: JobWorkload | None, new: JobWorkload, now: float) -> bool:
    """Whether a job's finding is to be written.

    Args:
        old: As written.
        new: As found.
        now: Seconds since the epoch.
    """
    if old is None:
        return True
    if {one.pod for one in old.stragglers} != {one.pod for one in new.stragglers}:
        return True
    age = now - timestamp(old.t)
    if any(getattr(old, field) != getattr(new, field) for field in _TOLD):
        return age >= LEAST / 2
    return age >= LEAST and msgspec.structs.replace(new, t=old.t) != old


def _reference(pod: PodSeen) -> ObjectReference:
    record = pod.record
    return ObjectReference("Pod", record.name, record.namespace, record.uid)


def _slow(one: SlowRank) -> str:
    who = "this pod" if one.rank is None else f"rank {one.rank}"
    return f"{who} takes {one.slowdown:.2f} times as long for a step as it should; others wait"


def _text(rank: int | None) -> str:
    return "" if rank is None else str(rank)
