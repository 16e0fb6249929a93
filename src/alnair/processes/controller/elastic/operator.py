"""The operator: for each training job that changed, observe, decide, carry out.

Reconciles keys, not events; every pass may be the first. Nothing sleeps in a pass: what is to be
looked at later is looked at later.
"""

import asyncio
import logging
import time
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace
from prometheus_client.metrics_core import Metric

from alnair.elastic import horovod
from alnair.elastic.child_names import child_names
from alnair.elastic.desired import desired
from alnair.elastic.job_status import news, refused, seconds
from alnair.elastic.observed import Hosts
from alnair.kube.backoff import Backoff, Backoffs
from alnair.kube.client import Client
from alnair.kube.errors import Forbidden, KubeError, NotFound
from alnair.kube.events import EventRecorder, ObjectReference
from alnair.kube.resources import CONFIGMAPS
from alnair.model import names
from alnair.model.elastic_plan import SizeChange
from alnair.model.elastic_types import JobStatus
from alnair.model.plurals import counted
from alnair.model.training_job import TrainingJob
from alnair.processes.controller.elastic.applied import Applied, child_of
from alnair.processes.controller.elastic.cache import RESOURCES, JobCache
from alnair.processes.controller.elastic.carrying_out import (
    LeftBehindError,
    NameTakenError,
    PodsRefusedError,
    carry_out,
    refusal,
    write_status,
)
from alnair.processes.controller.elastic.children import JobKey
from alnair.processes.controller.elastic.complaints import Complaints
from alnair.processes.controller.elastic.demands import Unplaced, takes_part
from alnair.processes.controller.elastic.ending_namespaces import EndingNamespaces
from alnair.processes.controller.elastic.figures import OperatorFigures
from alnair.processes.controller.elastic.lost_workers import forget_losses
from alnair.processes.controller.elastic.orphans import Orphans
from alnair.processes.controller.elastic.planner import Planner
from alnair.processes.controller.elastic.work_queue import WorkQueue
from alnair.processes.controller.paces import Paces

_log = logging.getLogger(__name__)

#: Seconds in which further changes of a job are gathered, after which a pass that failed is
#: repeated, at first and at most, and where the API server takes no such pods; and which a new job
#: waits for its first plan before its status says so.
_GATHER: Final = 0.05
_RETRY: Final = 1.0
_RETRY_MOST: Final = 10.0
_REFUSED: Final = 60.0
_FIRST_PLAN: Final = 1.0
#: They are gathered as long as the pass took, but at most so long: where answers are slow, fewer
#: writes are sooner done.
_GATHER_MOST: Final = 1.0
#: Jobs that are worked on at once.
_WORKERS: Final = 16
#: Seconds between two writes of one event.
_REPEAT: Final = 30.0
#: Seconds after which all is applied anew, lest somebody has changed it.
_ANEW: Final = 600.0


class TrainingJobOperator:
    """Follows training jobs, and writes while `run_writes` runs.

    Args:
        client: An open client.
        paces: How often the same is written.
    """

    def __init__(self, client: Client, paces: Paces | None = None) -> None:
        self._client = client
        self._paces = paces or Paces()
        self._cache = JobCache(client, self._mark)
        self._ending = EndingNamespaces(client, self._ends)
        self._planner = Planner(client, self._cache, self._resized)
        #: Clear while more jobs wait than are worked on: events are told later, then.
        self._calm = asyncio.Event()
        self._events = EventRecorder(
            client, names.CONTROLLER, calm=self._calm, repeat_every=_REPEAT
        )
        #: Jobs to look at; None while nobody would, as another process leads.
        self._queue: WorkQueue | None = None
        self._applied: dict[str, Applied] = {}
        self._hosts: dict[str, Hosts | None] = {}
        self._failures = Backoffs[JobKey](lambda: Backoff(_RETRY, _RETRY_MOST))
        self._complaints = Complaints(client)
        self._orphans = Orphans(client)
        self._figures = OperatorFigures()

    def metrics(self) -> Iterator[Metric]:
        """Return what is to be told of training jobs at /metrics."""
        waiting = None if self._queue is None else len(self._queue)
        return self._figures.metrics(self._planner, self._cache.jobs.values(), waiting)

    def unplaced(self) -> list[Unplaced]:
        """Return the jobs that have no pods, as they wait for room; none while nobody plans."""
        return self._planner.unplaced()

    async def follow(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cache.follow())
            await self._cache.any.wait()
            group.create_task(self._ending.run())

    async def run_writes(self) -> None:
        """Write until cancelled; begins with a look at every job."""
        self._queue = queue = WorkQueue(self._is_new)
        self._calm.set()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._planner.run())
                group.create_task(self._events.run())
                group.create_task(self._renew())
                await self._cache.synced()
                for key in self._cache.known():
                    queue.add(key)
                for _ in range(_WORKERS):
                    group.create_task(self._work(queue))
        finally:
            self._queue = None
            queue.close()

    def begin_anew(self) -> None:
        """Forget what was applied: another process may have led. Its objects tell what that did."""
        self._applied.clear()
        self._hosts.clear()

    async def _work(self, queue: WorkQueue) -> None:
        while True:
            key, since = await queue.take()
            if len(queue) > _WORKERS:
                self._calm.clear()
            begin, rests = time.monotonic(), True
            try:
                rests = await self._reconcile(key)
            finally:
                took = time.monotonic() - begin
                queue.done(key, max(_GATHER, min(took, _GATHER_MOST)) if rests else 0.0)
                if not len(queue):
                    self._calm.set()
                self._figures.passes.observe(time.monotonic() - since)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(_ANEW)
            present = {job.uid for job in self._cache.jobs.values()}
            for uid in [uid for uid in self._applied if uid not in present]:
                del self._applied[uid]
            for uid in [uid for uid in self._hosts if uid not in present]:
                del self._hosts[uid]
            for applied in self._applied.values():
                applied.renew()
            self._complaints.keep(present)
            keys = self._cache.known()
            self._orphans.keep(present | {"/".join(key) for key in keys})
            for key in keys:
                self._look(key)

    def _mark(self, key: JobKey) -> None:
        self._look(key)
        self._planner.mark(key)

    def _ends(self, namespace: str) -> None:
        """Look at the jobs of a namespace that is being deleted."""
        for key in self._cache.jobs:
            if key[1] == namespace:
                self._look(key)

    def _is_new(self, key: JobKey) -> bool:
        """Whether nothing was done about a job yet: its pods wait for it."""
        job = self._cache.jobs.get(key)
        return job is not None and job.uid not in self._applied

    def _look(self, key: JobKey) -> None:
        if self._queue is not None:
            self._queue.add(key)

    def _look_in(self, key: JobKey, seconds: float) -> None:
        if self._queue is not None:
            self._queue.add_at(key, seconds)

    def _resized(self, key: JobKey, change: SizeChange | None) -> None:
        """Have a job get the workers that a plan gives it, and say why."""
        self._look(key)
        job = self._cache.jobs.get(key)
        if change is not None and job is not None:
            said = f"{change.before} → {counted(change.after, 'worker')}: {change.message}"
            self._events.record(_reference(job), change.reason, said)

    async def _reconcile(self, key: JobKey) -> bool:
        """Bring a job in line; returns whether further changes of it are to be gathered."""
        job = self._cache.jobs.get(key)
        if job is None or job.deleting:
            self._failures.reset(key)
            if job is not None:
                self._applied.pop(job.uid, None)
                self._hosts.pop(job.uid, None)
                self._complaints.forget(job.uid)
            else:
                await self._let_go(key)
            return False
        if job.namespace in self._ending:
            await self._delete(job)
            return False
        if self._target(key, job) is None and self._awaits_plan(key, job):
            self._look_in(key, _FIRST_PLAN)
            return False
        try:
            await self._bring_in_line(key, job)
        except (NotFound, LeftBehindError):
            self._look_in(key, self._failures.next(key))
        except (Forbidden, NameTakenError) as error:
            # Its namespace is being deleted, or a right or a quota is missing, or a name is taken.
            _log.info("%s %s/%s: %s", *key, error)
            self._look_in(key, _RETRY_MOST)
        except PodsRefusedError as error:
            # Until the job is another, or the cluster takes other pods.
            _log.info("%s %s/%s: %s", *key, error)
            self._look_in(key, _REFUSED)
        except KubeError as error:
            _log.warning("%s %s/%s: %s", *key, error)
            self._look_in(key, self._failures.next(key))
        else:
            self._failures.reset(key)
        return True

    async def _let_go(self, key: JobKey) -> None:
        """Let go what a job that is gone has left."""
        now, orphans = time.time(), self._cache.orphans(key)
        try:
            left = await self._orphans.remove("/".join(key), key[1], orphans, now)
        except KubeError as error:
            _log.warning("pods of %s %s/%s, which is gone: %s", *key, error)
            left = now + _RETRY_MOST
        if left is not None:
            self._look_in(key, left - now)

    def _awaits_plan(self, key: JobKey, job: TrainingJob) -> bool:
        """Whether nothing is to be said of a new job yet, as a plan is about to be made."""
        is_new = not job.status.conditions and time.time() < job.created + 2 * _FIRST_PLAN
        return takes_part(job) and is_new and self._planner.size(key) is None

    async def _bring_in_line(self, key: JobKey, job: TrainingJob) -> None:
        applied = self._applied_of(key, job)
        hosts = await self._told(job)
        now = time.time()
        suspects = self._cache.suspects(key)
        said, ask = await self._complaints.about(job.uid, job.namespace, suspects, now)
        if self._cache.jobs.get(key) is not job:
            return  # it has changed while we asked, and is looked at again
        if applied.mend(said, job):
            said = ""  # it is our own, and is made again
        observed = self._cache.observed(key, hosts, has_keys=applied.keys, complaint=said)
        why = self._planner.waiting.why(key)
        observed = replace(observed, no_room=why.words, fits_nowhere=why.never)
        done = desired(job, observed, self._target(key, job), now)
        try:
            put_off = await carry_out(self._client, job, done, applied)
        except KubeError as error:
            if (trouble := refusal(error)) is not None:
                await self._write(job, refused(job.status, done.status, trouble, now), applied)
            raise
        for manifest in done.apply:
            if manifest["kind"] == "ConfigMap" and child_of(manifest) not in put_off:
                self._hosts[job.uid] = _hosts_of(manifest)
        told = await self._write(job, done.status, applied)
        if done.forget:
            await self._delete(job)
        lost = self._cache.lost(key)
        self._figures.writes["patch"] += await forget_losses(self._client, job.namespace, lost)
        orphans = self._cache.orphans(key)
        left = await self._orphans.remove(job.uid, job.namespace, orphans, now)
        waits = [at - now for at in (done.again, ask, left) if at is not None]
        if waits := [*waits, *put_off.values(), *([told] if told else [])]:
            self._look_in(key, min(waits))

    def _applied_of(self, key: JobKey, job: TrainingJob) -> Applied:
        """Return what was applied of a job, by this process or by one that led before."""
        if job.uid not in self._applied:
            self._applied[job.uid] = Applied(
                self._figures.writes,
                self._paces,
                found=self._cache.digests(key),
                # They are made before the workers.
                keys=self._cache.has_workers(key),
            )
        return self._applied[job.uid]

    async def _delete(self, job: TrainingJob) -> None:
        """Delete a job; what belongs to it goes with it."""
        try:
            await self._client.delete(
                RESOURCES[job.kind], job.name, job.namespace, uid=job.uid, propagation="Background"
            )
        except NotFound:
            return
        except KubeError as error:
            _log.warning("%s %s/%s: %s", job.kind, job.namespace, job.name, error)
            self._look_in((job.kind, job.namespace, job.name), _RETRY)

    def _target(self, key: JobKey, job: TrainingJob) -> int | None:
        """Return the workers that a job shall have: as planned or, before a plan, as it has."""
        if job.scheduler not in names.SCHEDULERS:
            return job.wish
        if self._planner.unreadable(key):
            return job.least  # so that the API server says what is wrong with it
        if (planned := self._planner.size(key)) is not None:
            return planned or None
        given = job.status.target_replicas
        return max(job.least, min(given, job.wish)) if given else None

    async def _told(self, job: TrainingJob) -> Hosts | None:
        """Return what the job's host discovery says; asked once, then known."""
        if job.framework != "horovod" or job.elastic is None:
            return None
        if not job.status.conditions:
            return self._hosts.setdefault(job.uid, None)  # it has just come, and has none
        if job.uid not in self._hosts:
            try:
                name = child_names(job).hosts
                found = await self._client.get(CONFIGMAPS, name, job.namespace)
                self._hosts[job.uid] = _hosts_of(found)
            except NotFound:
                self._hosts[job.uid] = None
        return self._hosts[job.uid]

    async def _write(self, job: TrainingJob, status: JobStatus, applied: Applied) -> float:
        """Write a status that has changed, and events of what is new in it.

        Returns:
            Seconds for which it is put off, as the last one was written shortly before.
        """
        if status == job.status:
            return 0.0
        if wait := applied.may_tell(job.status, status):
            return wait
        about = _reference(job)
        for reason, message, is_warning in news(job.status, status):
            self._events.record(about, reason, message, "Warning" if is_warning else "Normal")
        moved = status.migration
        if moved is not None and moved.done and moved != job.status.migration:
            self._events.record(about, "Migrated", moved.message, "Normal")
        self._figures.writes["status"] += 1
        await write_status(self._client, job, status)
        return 0.0


def _reference(job: TrainingJob) -> ObjectReference:
    api = RESOURCES[job.kind].api_version
    return ObjectReference(job.kind, job.name, job.namespace, job.uid, api)


def _hosts_of(manifest: dict[str, object]) -> Hosts:
    """Return what a ConfigMap's discovery says, and since when."""
    metadata, data = manifest.get("metadata") or {}, manifest.get("data") or {}
    assert isinstance(metadata, dict)
    assert isinstance(data, dict)
    since = (metadata.get("annotations") or {}).get(names.HOSTS_SINCE, "")
    return Hosts(horovod.listed_hosts(data.get(horovod.SCRIPT, "")), seconds(since))
