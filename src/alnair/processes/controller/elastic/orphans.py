"""Pods of training jobs whose maker is gone, which Kubernetes should have deleted and has not.

Its garbage collector forgets them if a StatefulSet or a Job is deleted and made anew under its name
while the collector's watch is interrupted, as when an API server is killed: its local copy then
tells it of a change, and not that the former one went (client-go's informers go by names). Such
pods hold GPUs, and their names, for ever. They are evicted here.

The Job controller forgets them, too, and keeps those that are deleted, and with them their
namespace, by its finalizer, also where the training job itself went in the meantime. It is taken
off here, as it would do it.
"""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from alnair.kube.client import STRATEGIC_MERGE, Client
from alnair.kube.errors import Conflict, Invalid, NotFound, TooManyRequests
from alnair.kube.objects.wire import ObjectMeta
from alnair.kube.resources import JOBS, PODS, STATEFUL_SETS
from alnair.processes.controller.elastic.children import TRACKED

#: Seconds that the garbage collector has; as a rule it needs less than one.
PATIENCE: Final = 10.0
#: Seconds after which an eviction is tried again.
_AGAIN: Final = 10.0


class Orphan(msgspec.Struct, frozen=True):
    """A pod that nobody will remove, as its maker is not known.

    Attributes:
        pod: Its name.
        uid: Of the pod.
        owner: Uid of what made it.
        maker: Name that what makes such pods has.
        is_set: The maker would be a StatefulSet, else a Job.
        held: It is being deleted, and waits for the Job to let it go.
    """

    pod: str
    uid: str
    owner: str
    maker: str
    is_set: bool
    held: bool = False


class Orphans:
    """Remembers since when pods have been orphans."""

    def __init__(self, client: Client) -> None:
        self._client = client
        #: By job, then by uid of the pod.
        self._since: dict[str, dict[str, float]] = {}

    def keep(self, present: Collection[str]) -> None:
        """Forget all jobs but these."""
        for job in [job for job in self._since if job not in present]:
            del self._since[job]

    async def remove(
        self, job: str, namespace: str, found: Sequence[Orphan], now: float
    ) -> float | None:
        """Remove those that have been orphans for long, and return when to look again.

        Args:
            job: Uid of the job, or what else tells it from others.
            namespace: Of the job.
            found: Its orphans.
            now: Seconds since the epoch.

        Raises:
            KubeError: The API server refuses something; all of it can be tried again.
        """
        known = self._since.pop(job, {})
        if not found:
            return None
        self._since[job] = since = {one.uid: known.get(one.uid, now) for one in found}
        for one in found:
            if now >= since[one.uid] + PATIENCE and not await self._has_maker(one, namespace):
                try:
                    await self._remove(one, namespace)
                except (NotFound, Conflict, Invalid, TooManyRequests):
                    continue  # it is gone, or another; or a disruption budget keeps it for now
        due = [at + PATIENCE for at in since.values()]
        return min(at if at > now else now + _AGAIN for at in due)

    async def _remove(self, one: Orphan, namespace: str) -> None:
        if not one.held:
            await self._client.evict(namespace, one.pod, one.uid)
            return
        # The uid makes the server refuse the patch if another pod has the name.
        meta = {"uid": one.uid, "$deleteFromPrimitiveList/finalizers": [TRACKED]}
        await self._client.raw(
            "PATCH",
            PODS.item(one.pod, namespace),
            body=msgspec.json.encode({"metadata": meta}),
            content_type=STRATEGIC_MERGE,
        )

    async def _has_maker(self, one: Orphan, namespace: str) -> bool:
        """Ask the API server: what we know of makers may be older than the pod."""
        try:
            if one.is_set:
                made = await self._client.get(STATEFUL_SETS.typed(_Maker), one.maker, namespace)
            else:
                made = await self._client.get(JOBS.typed(_Maker), one.maker, namespace)
        except NotFound:
            return False
        return made.metadata.uid == one.owner


class _Maker(msgspec.Struct):
    metadata: ObjectMeta
