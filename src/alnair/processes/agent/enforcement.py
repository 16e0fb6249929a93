"""What follows from a violation, carried out: an event and a condition on the pod, its eviction.

Whoever finds a violation hands it over and goes on; requests are made beside, evictions again and
again until the API server has answered. Without an API server, and for containers of no pod, the
log has it.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from alnair.kube.backoff import Backoff
from alnair.kube.client import Client
from alnair.kube.errors import ApiError, Conflict, ConnectionFailed, NotFound
from alnair.kube.events import EventRecorder, ObjectReference
from alnair.model import names
from alnair.node.vgpu.containers.container import VgpuContainer
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.processes.agent.violation_conditions import REASON, ViolationConditions
from alnair.sharing.strays import StrayAction, StrayFound, StrayGone
from alnair.sharing.violations import Action, Cleared, EvictTenant, SliceViolation, Throttle

#: Reason of the event on a pod of which a container may not start.
START_REFUSED: Final = "GpuStartRefused"
#: Reason of the events about a process on a GPU of which its pod was given nothing.
STRAY: Final = "StrayGpuProcess"
#: Reason of the event on a pod that must give memory back which it borrowed.
RECLAIMED: Final = "BorrowedGpuMemoryReclaimed"
#: Reasons of the events on a pod that was suspended or resumed, and that could not be.
SUSPENSION: Final = "GpuSuspension"
SUSPENSION_FAILED: Final = "GpuSuspensionFailed"

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
        self._node = node
        self._recorder = (
            EventRecorder(client, names.AGENT, instance=node) if client is not None else None
        )
        self._evictions: asyncio.Queue[tuple[OwningPod, str]] = asyncio.Queue()
        self._conditions = ViolationConditions(client)
        self.evictions = 0

    def tell(self, container: VgpuContainer, uuid: str, action: Action) -> None:
        """Take something over; returns at once."""
        pod, name = container.assignment.pod, container.assignment.name
        match action:
            case SliceViolation(kind, message):
                said = f"container {pod.container or name} on {uuid}: {message}"
                _log.warning("%s", said)
                self._conditions.add(pod, f"{name} {uuid} {kind}", said)
                if self._recorder is not None and pod.uid:
                    self._recorder.record(_reference(pod), REASON, said, "Warning")
            case Cleared(kind):
                _log.info("container %s on %s: no more %s", pod.container or name, uuid, kind)
                self._conditions.remove(pod, f"{name} {uuid} {kind}")
            case EvictTenant(message):
                self._ask_to_evict(pod, f"container {name}", message)
            case Throttle(on):
                _log.info("container %s on %s: throttled %s", name, uuid, "on" if on else "off")

    def refuse(self, pod: OwningPod, message: str, replace: bool) -> None:
        """Tell that a container may not start; if it is to be replaced, its pod is evicted."""
        _log.warning("%s/%s: %s", pod.namespace, pod.name, message)
        if self._recorder is not None:
            self._recorder.record(_reference(pod), START_REFUSED, message, "Warning")
        if replace:
            self._ask_to_evict(pod, f"pod {pod.namespace}/{pod.name}", message)

    def reclaim(self, container: VgpuContainer, uuid: str, message: str) -> None:
        """Evict a pod that broke no rule: its owner needs the memory that it borrowed."""
        pod, name = container.assignment.pod, container.assignment.name
        said = f"container {pod.container or name}: {message}"
        _log.warning("%s on %s", said, uuid)
        if self._recorder is not None and pod.uid:
            self._recorder.record(_reference(pod), RECLAIMED, said, "Warning")
        self._ask_to_evict(pod, f"container {name}", message)

    def tell_suspension(self, container: VgpuContainer, suspended: bool, problem: str) -> None:
        """Tell a pod that it was suspended or resumed, or why it could not be."""
        pod, name = container.assignment.pod, container.assignment.name
        verb = "suspended" if suspended else "resumed"
        said = f"container {pod.container or name} {'cannot be' if problem else 'is'} {verb}"
        said += f": {problem}" if problem else ""
        _log.log(logging.WARNING if problem else logging.INFO, "%s", said)
        if self._recorder is not None and pod.uid:
            if problem:
                self._recorder.record(_reference(pod), SUSPENSION_FAILED, said, "Warning")
            else:
                self._recorder.record(_reference(pod), SUSPENSION, said, "Normal")

    def tell_stray(self, pod: OwningPod, uuid: str, action: StrayAction) -> None:
        """Take over what is to be told of a pod on a GPU of which it was given nothing."""
        whose = f"pod {pod.namespace}/{pod.name}"
        match action:
            case StrayFound(message):
                said = f"on {uuid}: {message}"
                _log.warning("%s %s", whose, said)
                self._conditions.add(pod, f"stray {uuid}", said)
                if self._recorder is not None:
                    self._recorder.record(_reference(pod), STRAY, said, "Warning")
                    # As the kubelet writes its own: `kubectl describe node` looks for the name.
                    node = ObjectReference("Node", self._node, uid=self._node)
                    self._recorder.record(node, STRAY, f"{whose} {said}", "Warning")
            case StrayGone():
                _log.info("%s uses %s no more", whose, uuid)
                self._conditions.remove(pod, f"stray {uuid}")
            case EvictTenant(message):
                self._ask_to_evict(pod, whose, message)

    def _ask_to_evict(self, pod: OwningPod, whose: str, message: str) -> None:
        if self._client is None or not pod.uid:
            _log.warning("%s would be evicted: %s", whose, message)
        else:
            self._evictions.put_nowait((pod, message))

    def take_over(self, pods: Iterable[OwningPod]) -> None:
        """Note the pods that run already, of which an agent before this one may have told."""
        self._conditions.take_over(pods)

    async def run(self) -> None:
        """Make the requests, until cancelled."""
        async with asyncio.TaskGroup() as group:
            if self._recorder is not None:
                group.create_task(self._recorder.run())
            group.create_task(self._conditions.run())
            while True:
                pod, message = await self._evictions.get()
                if self._client is not None:
                    # Each on its own: a disruption budget may refuse one for hours.
                    group.create_task(self._evict(self._client, pod, message))

    async def _evict(self, client: Client, pod: OwningPod, message: str) -> None:
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


def _reference(pod: OwningPod) -> ObjectReference:
    return ObjectReference("Pod", pod.name, pod.namespace, pod.uid)
