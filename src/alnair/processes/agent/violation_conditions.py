"""Keeps the condition on pods true that says whether they use more than their GPU slices.

What is to be said is a table by pod; a pod whose condition was not written as the table says is
tried again until it is. What an agent before this one wrote is compared with the table, too.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

import msgspec

from alnair.kube.backoff import Backoff, Timers
from alnair.kube.client import Client
from alnair.kube.errors import Conflict, KubeError, NotFound
from alnair.kube.status import condition, patch_pod_status
from alnair.model import names
from alnair.node.vgpu.containers.container_slices import OwningPod

#: Reason of the condition and of the event on a pod.
REASON: Final = "GpuSliceExceeded"
#: Most seconds between tries of one condition.
_LAST_WAIT: Final = 30.0
#: Seconds after the start in which what still is a violation is found again.
_SETTLE: Final = 60.0

_log = logging.getLogger(__name__)


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Pod(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


class ViolationConditions:
    """Writes conditions while it runs.

    Args:
        client: An open client; None: there is no API server.
        timers: Clock and timers; by default the running event loop.
    """

    def __init__(self, client: Client | None, timers: Timers | None = None) -> None:
        self._client = client
        self._timers = timers
        #: What is found of a pod, by pod and by what it was found on.
        self._found: dict[str, dict[str, str]] = {}
        #: Pods whose condition may be another than it shall be; whether to look before writing.
        self._stale: dict[str, tuple[OwningPod, bool]] = {}
        self._due: asyncio.Queue[str] = asyncio.Queue()
        self._backoffs: dict[str, Backoff] = {}
        self._said: dict[str, str] = {}

    def add(self, pod: OwningPod, key: str, message: str) -> None:
        """Say something of a pod from now on, with what else is said of it."""
        if self._client is not None and pod.uid:
            self._found.setdefault(pod.uid, {})[key] = message
            self._mark(pod)

    def remove(self, pod: OwningPod, key: str) -> None:
        """Say it no more."""
        if self._client is not None and pod.uid:
            self._found.get(pod.uid, {}).pop(key, None)
            self._mark(pod)

    def take_over(self, pods: Iterable[OwningPod]) -> None:
        """Look at what was written of these pods, once all that is true has been found again."""
        if self._client is None:
            return
        for pod in {pod.uid: pod for pod in pods if pod.uid}.values():
            self._stale[pod.uid] = pod, True
            self._clock.call_later(_SETTLE, self._due.put_nowait, pod.uid)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            uid = await self._due.get()
            # One after another, and as it is when its turn comes, so that the last one is true.
            pod, is_to_look = self._stale.pop(uid, (None, False))
            if pod is None or self._client is None:
                continue
            try:
                if not is_to_look or await self._is_wrong(self._client, pod):
                    await self._write(self._client, pod)
            except (NotFound, Conflict):  # the pod is gone
                self._found.pop(uid, None)
            except (KubeError, msgspec.MsgspecError) as error:
                self._try_again(pod, is_to_look, error)
                continue
            self._backoffs.pop(uid, None)
            self._said.pop(uid, None)
            if not self._found.get(uid):
                self._found.pop(uid, None)

    @property
    def _clock(self) -> Timers:
        return self._timers or asyncio.get_running_loop()

    def _mark(self, pod: OwningPod) -> None:
        self._stale[pod.uid] = pod, False
        self._due.put_nowait(pod.uid)

    def _try_again(self, pod: OwningPod, is_to_look: bool, error: Exception) -> None:
        if self._said.get(pod.uid) != str(error):  # once, and not at every try
            self._said[pod.uid] = str(error)
            _log.warning("condition of %s/%s: %s", pod.namespace, pod.name, error)
        self._stale.setdefault(pod.uid, (pod, is_to_look))
        backoff = self._backoffs.setdefault(pod.uid, Backoff(most=_LAST_WAIT))
        self._clock.call_later(backoff.next(), self._due.put_nowait, pod.uid)

    async def _is_wrong(self, client: Client, pod: OwningPod) -> bool:
        """Return whether the pod's condition says another thing than was found."""
        # A patch of nothing answers with the pod, and needs no further right.
        data = await patch_pod_status(client, pod.namespace, pod.name, pod.uid, {})
        there = msgspec.json.decode(data, type=_Pod).status.conditions or []
        written = any(c.type == names.VGPU_VIOLATION and c.status == "True" for c in there)
        return written != bool(self._found.get(pod.uid))

    async def _write(self, client: Client, pod: OwningPod) -> None:
        found = self._found.get(pod.uid)
        written = condition(
            names.VGPU_VIOLATION,
            is_true=bool(found),
            reason=REASON if found else "WithinSlice",
            message="; ".join(found.values()) if found else "",
        )
        status = {"conditions": [written]}
        await patch_pod_status(client, pod.namespace, pod.name, pod.uid, status)
