"""One move: begun, pushed on, and found to be over; each of it can be repeated by whoever leads."""

import contextlib
import logging
import time
from collections.abc import Callable
from typing import Final

import msgspec

from alnair.elastic.job_status import waits_since
from alnair.kube.client import Client
from alnair.kube.errors import Conflict, KubeError, NotFound, TooManyRequests
from alnair.kube.objects.annotations import rfc3339
from alnair.kube.objects.training_jobs import project_training_job
from alnair.kube.objects.wire import ObjectMeta
from alnair.kube.resources import PODS
from alnair.live.training import changing, rebalanced
from alnair.live.training.finding import RESOURCES, JobError
from alnair.model import names
from alnair.model.rebalancing import PlannedMove, RebalancePlan, Stage
from alnair.model.training_job import TrainingJob
from alnair.scheduler.advice.rebalance import Move

_log = logging.getLogger(__name__)


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str | None = None


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: ObjectMeta
    spec: _Spec
    status: _Status = _Status()

    @property
    def owner(self) -> str:
        owners = self.metadata.owner_references or ()
        return next((one.uid for one in owners if one.controller), "")

    def works(self, *, running: bool) -> bool:
        """Whether it has a node, or runs there."""
        if self.metadata.deletion_timestamp or not self.spec.node_name:
            return False
        return self.status.phase == "Running" if running else self.status.phase != "Failed"


_PODS: Final = PODS.typed(_Pod)


class Moving:
    """Moves pods by their eviction, and training jobs by their migration.

    Args:
        client: An open client.
        timeout: Seconds that a move may take; of a job, for each of its workers.
        now: Seconds since the epoch.
    """

    def __init__(
        self, client: Client, timeout: float, now: Callable[[], float] = time.time
    ) -> None:
        self._client = client
        self._timeout = timeout
        self._now = now

    async def begun(self, plan: RebalancePlan, index: int) -> dict[int, PlannedMove]:
        """Return the moves that begin with this one, as they are to be written before it is done.

        Raises:
            KubeError: The cluster cannot be read.
        """
        move = plan.moves[index]
        pod = await self._pod(move.namespace, move.name, move.uid)
        gone = {index: msgspec.structs.replace(move, stage="gone")}
        refused = {index: msgspec.structs.replace(move, stage="refused", begun=self._now())}
        if pod is None:
            return gone
        if (pod.metadata.annotations or {}).get(names.EVICTABLE) == "false":
            return refused
        waiting = [_as_move(one) for one in plan.moves if one.stage == "waits"]
        now = self._now()
        whole = await rebalanced.job_of(self._client, _as_move(move), waiting)
        if whole is not None:
            if whole.job.leaves:
                return refused  # somebody else moves it
            job = f"{whole.job.kind}/{whole.job.name}"
            leaving = {
                at: msgspec.structs.replace(one, stage="begun", begun=now, job=job)
                for at, one in enumerate(plan.moves)
                if one.stage == "waits" and one.uid in whole.workers
            }
            return leaving if index in leaving else gone
        peers = sum(
            one.works(running=bool(move.gang)) for one in await self._peers(move, pod.owner)
        )
        begun = msgspec.structs.replace(
            move, stage="begun", begun=now, owner=pod.owner, peers=peers
        )
        return {index: begun}

    async def push(self, move: PlannedMove, workers: int) -> Stage:
        """Do what is to be done about a move that has begun; returns how far it is.

        Args:
            move: Which.
            workers: Pods that move with its job.

        Raises:
            KubeError: The API server refuses something.
        """
        is_late = self._now() - move.begun > self._timeout * workers
        if move.job:
            return await self._push_job(move, is_late=is_late)
        pod = await self._pod(move.namespace, move.name, move.uid)
        if pod is not None and pod.metadata.deletion_timestamp is None:
            if is_late:
                return "refused"
            try:
                await self._client.evict(move.namespace, move.name, move.uid)
            except TooManyRequests as error:
                _log.debug("%s/%s may not be evicted now: %s", move.namespace, move.name, error)
            except (NotFound, Conflict):
                pass  # it has just gone
            return "begun"
        peers = await self._peers(move, move.owner)
        if sum(one.works(running=bool(move.gang)) for one in peers) >= move.peers:
            return "done"
        return "late" if is_late else "begun"

    async def _push_job(self, move: PlannedMove, *, is_late: bool) -> Stage:
        kind, _, name = move.job.partition("/")
        try:
            job = project_training_job(
                await self._client.get(RESOURCES[kind], name, move.namespace)
            )
        except NotFound:
            return "gone"
        if job.finished or job.deleting:
            return "gone"
        request = f"{move.source}@{rfc3339(move.begun)}"
        said = job.status.migration
        if said is not None and said.request == request:
            if said.done:
                return "done"
            if job.leave != request:
                return "refused"  # it was asked for, and then its owner wanted it otherwise
        elif job.leave != request and job.leaves:
            return "refused"
        if is_late:
            await self._withdraw(job, request)
            return "refused"
        if job.leave != request:
            with contextlib.suppress(JobError):
                await changing.leave(self._client, job, (move.source,), rfc3339(move.begun))
        return "begun"

    async def _withdraw(self, job: TrainingJob, request: str) -> None:
        """Let a job stay that does not leave in time, unless somebody else has asked it to."""
        if job.leave == request:
            with contextlib.suppress(JobError, KubeError):
                await changing.leave(self._client, job, (), "")

    async def waits(self, plan: RebalancePlan) -> bool:
        """Return whether those for whom a plan is made still wait for a node.

        Raises:
            KubeError: The cluster cannot be read.
        """
        if plan.job:
            return await self._job_waits(plan)
        pod = await self._pod(*plan.pod)
        return pod is not None and not (pod.metadata.deletion_timestamp or pod.spec.node_name)

    async def _job_waits(self, plan: RebalancePlan) -> bool:
        namespace, name, uid = plan.pod
        try:
            job = project_training_job(await self._client.get(RESOURCES[plan.job], name, namespace))
        except NotFound:
            return False
        return job.uid == uid and waits_since(job) is not None

    async def _pod(self, namespace: str, name: str, uid: str) -> _Pod | None:
        """Return a pod; None if it is gone, or has ended."""
        try:
            found = await self._client.get(_PODS, name, namespace)
        except NotFound:
            return None
        is_over = found.status.phase in ("Succeeded", "Failed")
        return found if found.metadata.uid == uid and not is_over else None

    async def _peers(self, move: PlannedMove, owner: str) -> list[_Pod]:
        listed = await self._client.list(_PODS, move.namespace)
        return [one for one in listed.items if owner and one.owner == owner]


def _as_move(move: PlannedMove) -> Move:
    return Move(move.namespace, move.name, move.uid, move.source, move.target)
