"""Follows pods, and says which were lost: none may end, start again or stay unbound.

A pod is lost that ends, goes or is told to go though nobody of the test deleted it, whose
container is another than before, or that is not bound or does not start in the end. Times are
monotonic seconds of this process.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.informer import Change, Informer
from alnair.kube.resources import EVENTS, PODS, Manifest


class Course(msgspec.Struct):
    """What became of a pod, as far as it is seen; 0: not yet."""

    created: float
    is_real: bool
    bound: float = 0.0
    started: float = 0.0
    containers: frozenset[str] = frozenset()
    #: Of its deletion by the test.
    deleted: float = 0.0


class PodWatch:
    """Watches the pods of some namespaces while it runs.

    Args:
        client: Of an administrator.

    Attributes:
        courses: By namespace and name, of all that the test made.
        lost: Why, by the same.
        bindings: When pods were bound, in order.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.courses: dict[tuple[str, str], Course] = {}
        self.lost: dict[str, str] = {}
        self.bindings: list[float] = []
        self._informer = Informer(client, PODS, lambda pod: pod, self._hear)

    async def run(self) -> None:
        """Watch, until cancelled."""
        await self._informer.run()

    async def create(self, manifest: Manifest, *, is_real: bool = False) -> None:
        """Make a pod."""
        meta = manifest["metadata"]
        self.courses[meta["namespace"], meta["name"]] = Course(time.monotonic(), is_real)
        await self._client.create(PODS, manifest)

    async def delete(self, namespace: str, name: str) -> None:
        """Delete a pod: it is not lost."""
        self.courses[namespace, name].deleted = time.monotonic()
        with contextlib.suppress(NotFound):  # it is lost, then
            await self._client.delete(PODS, name, namespace)

    async def started(self, keys: Iterable[tuple[str, str]], seconds: float) -> None:
        """Wait until pods run, or are lost; one that takes longer is."""
        waiting = set(keys)
        until = time.monotonic() + seconds
        while waiting := {key for key in waiting if not self._is_settled(key)}:
            if time.monotonic() > until:
                for key in waiting:
                    self._wait_is_over(key)
                return
            await asyncio.sleep(0.05)

    def _is_settled(self, key: tuple[str, str]) -> bool:
        return bool(self.courses[key].started) or "/".join(key) in self.lost

    def _wait_is_over(self, key: tuple[str, str]) -> None:
        what = "it does not start" if self.courses[key].bound else "it is not bound"
        self.lost.setdefault("/".join(key), what)

    async def told(self) -> list[str]:
        """What events say of the pods that were lost."""
        found = []
        for namespace in {name.partition("/")[0] for name in self.lost}:
            for event in (await self._client.list(EVENTS, namespace)).items:
                name = f"{namespace}/{event['involvedObject']['name']}"
                if name in self.lost:
                    found.append(f"{name}: {event.get('reason')}: {event.get('message')}")
        return found

    def end(self) -> None:
        """Judge those that still wait."""
        for key, course in self.courses.items():
            if not (course.deleted or course.started):
                self._wait_is_over(key)

    def longest(self, *, real: bool) -> dict[str, float]:
        """Longest seconds that pods waited: to be bound, and from then to their start."""
        found = {"to be bound": 0.0, "to start": 0.0}
        for course in self.courses.values():
            if course.is_real == real and course.bound:
                waits = found["to be bound"], course.bound - course.created
                found["to be bound"] = max(waits)
                if course.started:
                    found["to start"] = max(found["to start"], course.started - course.bound)
        return {what: round(seconds, 2) for what, seconds in found.items()}

    def pause(self) -> float:
        """Longest seconds between two bindings; pods come all the time."""
        return max((b - a for a, b in itertools.pairwise(self.bindings)), default=0.0)

    def _hear(self, change: Change[Manifest]) -> None:
        course = self.courses.get(change.key)
        if course is None:
            return
        name, now = "/".join(change.key), time.monotonic()
        if change.new is None:
            if not course.deleted:
                self.lost.setdefault(name, "it is gone, and nobody deleted it")
            return
        pod = change.new
        if pod["spec"].get("nodeName") and not course.bound:
            course.bound = now
            self.bindings.append(now)
        if course.deleted:
            return
        status: dict[str, Any] = pod["status"]
        listed = status.get("containerStatuses") or []
        # A simulated one has no id.
        ids = ((one["name"], one.get("containerID")) for one in listed if "running" in one["state"])
        running = frozenset(f"{name} {found}" for name, found in ids)
        if status["phase"] == "Running" and len(running) == len(listed):
            course.started = course.started or now
        if status["phase"] == "Failed" or pod["metadata"].get("deletionTimestamp"):
            why = {key: status.get(key) for key in ("phase", "reason", "message")}
            self.lost.setdefault(name, f"{why} {listed}")
        if any(one.get("restartCount") for one in listed):
            self.lost.setdefault(name, "its container was started again")
        if course.containers - running:
            self.lost.setdefault(name, f"containers ended: {listed}")
        course.containers |= running
