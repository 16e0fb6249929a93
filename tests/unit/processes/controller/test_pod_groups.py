"""The writer of PodGroups' statuses: how often it writes, and how soon what was refused again."""

import asyncio
from typing import Any

import msgspec
import pytest

from alnair.kube.errors import Conflict, KubeError, ServerUnavailable
from alnair.kube.resources import PODGROUPS
from alnair.model.api_types import PodGroupStatus
from alnair.processes.controller.pod_groups import PodGroupStatusWriter, Seen
from alnair.scheduler.gangs.pod_group_status import Member

API = PODGROUPS.api_version
KEY = ("team", "gang")


class FakeClient:
    """Of an API server that refuses, until it is told not to."""

    def __init__(self) -> None:
        self.refusal: KubeError | None = None

    async def merge_patch(self, *args: Any, **options: Any) -> None:
        if self.refusal is not None:
            raise self.refusal


class Writer(PodGroupStatusWriter):
    """Remembers after how long it is to look again."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.waits: list[float] = []
        seen = Seen("gang", "team", "uid", "7", 2, PodGroupStatus())
        self._kinds[API].informer._values[KEY] = seen

    def _again(self, api: str, key: tuple[str, str], seconds: float) -> None:
        self.waits.append(seconds)

    async def tries(self, count: int) -> list[float]:
        """Look at the group so many times, and return the waits."""
        self.waits.clear()
        for _ in range(count):
            await self._reconcile(API, KEY, asyncio.Semaphore(1))
        return [*self.waits]


@pytest.mark.parametrize(
    "refusal",
    [Conflict(409, "Conflict", "it is another version"), ServerUnavailable(503, "", "it starts")],
)
async def test_what_is_refused_again_and_again_is_tried_ever_more_seldom(
    refusal: KubeError,
) -> None:
    client = FakeClient()
    writer = Writer(client)
    client.refusal = refusal
    waits = await writer.tries(10)
    assert len(waits) == 10
    assert max(waits[5:]) > 2 * waits[0]
    assert min(waits[8:]) >= 3.0
    # After a success it begins anew.
    client.refusal = None
    assert await writer.tries(1) == []
    client.refusal = refusal
    assert max(await writer.tries(1)) < 2.0


# --- how often it is written ----------------------------------------------------------------------


class Taking:
    """Of an API server that takes each status; counts them."""

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.events: list[str] = []
        self.writer: Any = None

    async def merge_patch(self, resource: Any, name: str, patch: Any, *args: Any, **_: Any) -> None:
        informer = self.writer._kinds[API].informer
        seen = informer.items[KEY]
        status = {**msgspec.to_builtins(seen.status), **patch["status"]}
        kept = {field: value for field, value in status.items() if value is not None}
        told = msgspec.structs.replace(seen, status=msgspec.convert(kept, PodGroupStatus))
        informer._values[KEY] = told
        self.phases.append(kept["phase"])

    async def create(self, _: Any, event: Any) -> None:
        self.events.append(event["reason"])


class Gang:
    """A gang each of whose pods goes its way, a change every 50 ms."""

    def __init__(self, size: int, *, is_jobs: bool = False) -> None:
        self.now = 0.0
        self.client = Taking()
        self.client.writer = self.writer = PodGroupStatusWriter(self.client, lambda: self.now)  # type: ignore[arg-type]
        seen = Seen("gang", "team", "uid", "7", size, PodGroupStatus(), is_jobs=is_jobs)
        self.writer._kinds[API].informer._values[KEY] = seen
        self.names = [f"pod-{n}" for n in range(size)]

    async def become(self, **fields: Any) -> None:
        for name in self.names:
            self.writer._members[KEY][name] = Member(name, **{"bound": True, **fields})
            self.now += 0.05
            await self.look()

    async def look(self) -> None:
        await self.writer._reconcile(API, KEY, asyncio.Semaphore(1))

    @property
    def status(self) -> PodGroupStatus:
        return self.writer._kinds[API].informer.items[KEY].status


async def test_a_gang_of_a_hundred_pods_costs_a_few_writes_and_each_phase_is_told_at_once() -> None:
    gang = Gang(100)
    await gang.become(phase="Pending", bound=False)
    assert gang.status.phase == "Scheduling"
    await gang.become(phase="Pending")
    assert (gang.status.phase, gang.status.scheduled) == ("Scheduled", 100)
    await gang.become(phase="Running")
    assert (gang.status.phase, gang.status.running) == ("Running", 100)
    await gang.become(phase="Succeeded")
    assert (gang.status.phase, gang.status.succeeded) == ("Finished", 100)
    # 400 changes in 20 s: five phases, and counts every 5 s at most.
    assert len(gang.client.phases) <= 5 + 4
    assert list(dict.fromkeys(gang.client.phases)) == [
        *("Pending", "Scheduling", "Scheduled", "Running", "Finished")
    ]


async def test_counts_that_were_put_off_are_written_when_their_time_comes() -> None:
    gang = Gang(2)
    await gang.become(phase="Running")
    gang.writer._marked = {}
    gang.writer._members[KEY]["extra"] = Member("extra", "Running", bound=True)
    await gang.look()
    await gang.look()
    assert gang.status.running == 2
    assert gang.writer._resting == {(API, KEY)}, "one look is to come, and no more"
    gang.now += 5.0
    await gang.look()
    assert gang.status.running == 3


async def test_of_a_training_jobs_group_only_failures_are_told_by_events() -> None:
    for is_jobs, phase, events in (
        (False, "Succeeded", ["Running", "MembersSucceeded"]),
        (True, "Succeeded", []),
        (True, "Failed", ["MemberFailed"]),
    ):
        gang = Gang(2, is_jobs=is_jobs)
        await gang.become(phase="Running")
        await gang.become(phase=phase)
        assert gang.client.events == events
