"""Tells people what became of their pods: events, and the PodScheduled condition of refused ones.

All of it may lag. That a gang is not complete is told a second later, if it still is not: its pods
come one after the other, and each would be told that others lack. Conditions wait in a table by
pod, so that of several refusals only the last is written; events are the recorder's matter.
"""

import asyncio
import logging

from alnair.kube.backoff import Backoff
from alnair.kube.client import Client
from alnair.kube.errors import ApiError, KubeError, NotFound
from alnair.kube.events import EventKind, EventRecorder, ObjectReference
from alnair.kube.status import condition, patch_pod_status
from alnair.model import names
from alnair.model.action import PREEMPTED, Evict, Report
from alnair.model.workload import Pod
from alnair.scheduler.gangs.gang_refusal import is_not_ready

_log = logging.getLogger(__name__)

#: Pods whose events may wait at once; a burst beyond this drops repeats first.
_CAPACITY = 50_000
_EVENTS_IN_FLIGHT = 16
_WRITERS = 2
#: Seconds in which the others of a gang may come before its pods are told that they lack.
_COMING = 1.0


class Reporter:
    """Writes events and conditions; with few requests at once while it is not `calm`."""

    def __init__(self, client: Client, calm: asyncio.Event) -> None:
        self._client = client
        self._recorder = EventRecorder(
            client, names.SCHEDULER, capacity=_CAPACITY, in_flight=_EVENTS_IN_FLIGHT, calm=calm
        )
        self._conditions: dict[str, Report] = {}
        #: Of those that are being written, what was reported last.
        self._writing: dict[str, Report] = {}
        #: Of pods of gangs that are not complete: what they are told when that has lasted.
        self._coming: dict[str, asyncio.TimerHandle] = {}
        self._news = asyncio.Event()
        self._backoff = Backoff()

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.run())
            for _ in range(_WRITERS):
                group.create_task(self._write_conditions())

    def report(self, report: Report) -> None:
        """Tell the pod's owner."""
        uid = report.pod.uid
        if (timer := self._coming.pop(uid, None)) is not None:
            timer.cancel()
        if report.kind == "FailedScheduling" and is_not_ready(report.message):
            loop = asyncio.get_running_loop()
            self._coming[uid] = loop.call_later(_COMING, self._tell, report)
        else:
            self._tell(report)

    def _tell(self, report: Report) -> None:
        self._coming.pop(report.pod.uid, None)
        kind: EventKind = "Normal" if report.kind == "Scheduled" else "Warning"
        self._recorder.record(_reference(report.pod), report.kind, report.message, kind)
        if report.kind == "FailedScheduling":
            self._conditions[report.pod.uid] = report
            self._news.set()
        else:
            self._conditions.pop(report.pod.uid, None)
            self._writing.pop(report.pod.uid, None)

    def evicting(self, action: Evict) -> None:
        """Tell why a pod is evicted."""
        kind: EventKind = "Normal" if action.reason == PREEMPTED else "Warning"
        self._recorder.record(_reference(action.pod), action.reason, action.message, kind)

    def tell(self, about: ObjectReference, reason: str, message: str, kind: EventKind) -> None:
        """Tell something about an object that is no pod to schedule."""
        self._recorder.record(about, reason, message, kind)

    async def drain(self, seconds: float, writing: asyncio.Task[None]) -> None:
        """Write the events that are still to be written, for at most so many seconds.

        Conditions are left to who decides next.

        Args:
            seconds: to write at most.
            writing: runs `run`; if that has ended, nothing is written any more.
        """
        self._conditions.clear()
        drained = asyncio.create_task(self._recorder.drain(seconds))
        try:
            await asyncio.wait((drained, writing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            drained.cancel()

    async def _write_conditions(self) -> None:
        while True:
            while not self._conditions:
                self._news.clear()
                await self._news.wait()
            uid = next(iter(self._conditions))
            await self._write(self._conditions.pop(uid))

    async def _write(self, report: Report) -> None:
        """Write a condition; one that nobody could take is written later, if it still holds."""
        pod = report.pod
        self._writing[pod.uid] = report
        refused = condition(
            "PodScheduled", is_true=False, reason="Unschedulable", message=report.message
        )
        status = {"conditions": [refused]}
        try:
            await patch_pod_status(self._client, pod.namespace, pod.name, pod.uid, status)
        except NotFound:
            self._is_last(report)
        except KubeError as error:
            _log.warning("condition of %s/%s: %s", pod.namespace, pod.name, error)
            await self._keep(report, error)
        else:
            self._is_last(report)
            self._backoff.reset()

    async def _keep(self, report: Report, error: KubeError) -> None:
        uid = report.pod.uid
        is_passing = not isinstance(error, ApiError) or error.is_transient
        if is_passing:
            await asyncio.sleep(self._backoff.next())
        if self._is_last(report) and is_passing and uid not in self._conditions:
            self._conditions[uid] = report
            self._news.set()

    def _is_last(self, report: Report) -> bool:
        """End the writing of a report; returns whether no later one of its pod has begun."""
        uid = report.pod.uid
        if self._writing.get(uid) is not report:
            return False
        del self._writing[uid]
        return True


def _reference(pod: Pod) -> ObjectReference:
    return ObjectReference("Pod", pod.name, pod.namespace, pod.uid)
