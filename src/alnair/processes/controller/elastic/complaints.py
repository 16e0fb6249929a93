"""What Kubernetes complains of while it makes and starts a job's pods, read from its events.

That a pod is not made, for a quota or a ServiceAccount, or does not start for a Secret, is told
nowhere else. It is asked only about what has been amiss for a while, and then every so often.
"""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.resources import EVENTS

#: Seconds that something may take, and between two questions about a job.
PATIENCE: Final = 3.0
_EVERY: Final = 15.0


class Suspect(msgspec.Struct, frozen=True):
    """An object that may be complained of: whose pods it is about, `worker` or `launcher`."""

    role: str
    kind: str
    name: str
    uid: str


class _About(msgspec.Struct):
    uid: str = ""


class _Event(msgspec.Struct, rename="camel"):
    involved_object: _About
    reason: str | None = None
    message: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None


class Complaints:
    """Remembers since when a job has had suspects, and what was last said."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._since: dict[str, float] = {}
        self._said: dict[str, tuple[float, str]] = {}

    def forget(self, job: str) -> None:
        """Forget a job, by its uid."""
        self._since.pop(job, None)
        self._said.pop(job, None)

    def keep(self, present: Collection[str]) -> None:
        """Forget all jobs but these."""
        for job in [job for job in self._since if job not in present]:
            self.forget(job)

    async def about(
        self, job: str, namespace: str, suspects: Sequence[Suspect], now: float
    ) -> tuple[str, float | None]:
        """Return the last warning about one of these, and when to ask again.

        Args:
            job: Uid of the job.
            namespace: Of the job.
            suspects: Of the job's objects.
            now: Seconds since the epoch.

        Returns:
            The warning as `Observed.complaint` has it, empty if there is none.
        """
        if not suspects:
            self.forget(job)
            return "", None
        since = self._since.setdefault(job, now)
        if now < since + PATIENCE:
            return "", since + PATIENCE
        at, said = self._said.get(job, (0.0, ""))
        if now >= at + _EVERY:
            at, said = now, await self._ask(namespace, suspects)
            self._said[job] = at, said
        return said, at + _EVERY

    async def _ask(self, namespace: str, suspects: Sequence[Suspect]) -> str:
        for one in suspects:
            which = f"involvedObject.kind={one.kind},involvedObject.name={one.name},type=Warning"
            found = await self._client.list(EVENTS.typed(_Event), namespace, field_selector=which)
            own = [event for event in found.items if event.involved_object.uid == one.uid]
            if own:
                last = max(own, key=lambda event: event.last_timestamp or event.event_time or "")
                return f"{one.role} {last.reason}: {last.message}"
        return ""
