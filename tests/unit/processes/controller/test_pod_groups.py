"""The writer of PodGroups' statuses: how soon what was refused is tried again."""

import asyncio
from typing import Any

import pytest

from alnair.kube.errors import Conflict, KubeError, ServerUnavailable
from alnair.kube.resources import PODGROUPS
from alnair.model.api_types import PodGroupStatus
from alnair.processes.controller.pod_groups import PodGroupStatusWriter, Seen

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
