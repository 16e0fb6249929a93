"""What follows from a violation, carried out: an event and a condition on the pod, its eviction.

Whoever finds a violation hands it over and goes on; requests are made beside, evictions again and
again until the API server has answered. Without an API server, and for containers of no pod, the
log has it.
"""

import asyncio
import logging
from typing import Final

from alnair.kube.backoff import Backoff
from alnair.kube.client import Client
from alnair.kube.errors import ApiError, Conflict, ConnectionFailed, KubeError, NotFound
from alnair.kube.events import EventRecorder, ObjectReference
from alnair.kube.status import condition, patch_pod_status
from alnair.model import names
from alnair.node.vgpu.assignment import Pod
from alnair.node.vgpu.container import Container
from alnair.sharing.violations import Action, Cleared, Evict, Throttle, Violation

#: Reason of the event on a pod.
REASON: Final = "GpuSliceExceeded"
#: Violations of one container are told together in its pod's condition.
_Told = dict[str, dict[str, str]]

_log = logging.getLogger(__name__)


class Enforcement:
    """Tells and evicts.

    Args:
        client: An open client; None: there is no API server.
        node: Name of this node.

    Attributes:
        evictions: Pods whose eviction the API server has accepted.
    """

    def __init__(self, client: Client | None, node: str) -> None:
        self._client = client
        self._recorder = (
            EventRecorder(client, names.AGENT, instance=node) if client is not None else None
        )
        self._work: asyncio.Queue[tuple[Pod, str | None]] = asyncio.Queue()
        self._told: _Told = {}
        self._marking = asyncio.Lock()
        self.evictions = 0

    def tell(self, container: Container, uuid: str, action: Action) -> None:
        """Take something over; returns at once."""
        pod, name = container.assignment.pod, container.assignment.name
        told = self._told.setdefault(pod.uid, {})
        match action:
            case Violation(kind, message):
                said = f"container {pod.container or name} on {uuid}: {message}"
                _log.warning("%s", said)
                told[f"{name} {uuid} {kind}"] = said
                if self._recorder is not None and pod.uid:
                    self._recorder.record(_reference(pod), REASON, said, "Warning")
                self._work.put_nowait((pod, None))
            case Cleared(kind):
                _log.info("container %s on %s: no more %s", pod.container or name, uuid, kind)
                told.pop(f"{name} {uuid} {kind}", None)
                self._work.put_nowait((pod, None))
            case Evict(message):
                if self._client is None or not pod.uid:
                    _log.warning("container %s would be evicted: %s", name, message)
                else:
                    self._work.put_nowait((pod, message))
            case Throttle(on):
                _log.info("container %s on %s: throttled %s", name, uuid, "on" if on else "off")

    async def run(self) -> None:
        """Make the requests, until cancelled."""
        async with asyncio.TaskGroup() as group:
            if self._recorder is not None:
                group.create_task(self._recorder.run())
            while True:
                pod, message = await self._work.get()
                if self._client is not None and pod.uid:
                    # Each on its own: a disruption budget may refuse one for hours.
                    if message is None:
                        group.create_task(self._mark(self._client, pod))
                    else:
                        group.create_task(self._evict(self._client, pod, message))

    async def _mark(self, client: Client, pod: Pod) -> None:
        """Write the pod's condition as it is when its turn comes, so that the last one is true."""
        async with self._marking:
            await self._mark_now(client, pod)

    async def _mark_now(self, client: Client, pod: Pod) -> None:
        told = self._told.get(pod.uid, {})
        found = condition(
            names.VGPU_VIOLATION,
            is_true=bool(told),
            reason=REASON if told else "WithinSlice",
            message="; ".join(told.values()),
        )
        status = {"conditions": [found]}
        try:
            await patch_pod_status(client, pod.namespace, pod.name, pod.uid, status)
        except NotFound:
            self._told.pop(pod.uid, None)
        except KubeError as error:  # the next change writes it anew
            _log.warning("condition of %s/%s: %s", pod.namespace, pod.name, error)
        else:
            if not self._told.get(pod.uid):
                self._told.pop(pod.uid, None)

    async def _evict(self, client: Client, pod: Pod, message: str) -> None:
        """Ask until it is accepted, or there is no such pod any more."""
        backoff = Backoff()
        while True:
            try:
                await client.evict(pod.namespace, pod.name, pod.uid)
            except (NotFound, Conflict):
                return
            except (ApiError, ConnectionFailed) as error:
                _log.warning("eviction of %s/%s: %s", pod.namespace, pod.name, error)
                if isinstance(error, ApiError) and not error.is_transient:
                    return
                asked = error.retry_after if isinstance(error, ApiError) else None
                await asyncio.sleep(backoff.next(asked))
            else:
                self.evictions += 1
                _log.warning("evicted %s/%s: %s", pod.namespace, pod.name, message)
                return


def _reference(pod: Pod) -> ObjectReference:
    return ObjectReference("Pod", pod.name, pod.namespace, pod.uid)
