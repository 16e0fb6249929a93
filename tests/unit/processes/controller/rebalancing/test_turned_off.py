"""Rebalancing that is turned off: one read, unless it has left something."""

import logging
from typing import Any

import msgspec
import pytest

from alnair.kube.errors import Forbidden, NotFound, ServerUnavailable
from alnair.kube.resources import CONFIGMAPS
from alnair.model.rebalancing import RebalanceMemory, RebalancePlan
from alnair.processes.controller.rebalancing import memory_store, turned_off

PLAN = RebalancePlan(
    unit="u", name="pod a/b", pod=("a", "b", "c"), gpus=8, at=1.0, nodes=("a",), moves=()
)


class FakeClient:
    """An API server that refuses what it is told to, in this order."""

    def __init__(self, memory: RebalanceMemory | None, *refusals: Exception) -> None:
        self.memory = memory
        self.refusals = [*refusals]
        self.asked: list[str] = []

    async def get(self, resource: Any, name: str, namespace: str) -> dict[str, Any]:
        assert (resource, name) == (CONFIGMAPS, memory_store.NAME)
        self.asked.append("get")
        if self.memory is None:
            raise NotFound(404, "NotFound", "there is none")
        data = {"memory.json": msgspec.json.encode(self.memory).decode()}
        return {"metadata": {"resourceVersion": "1"}, "data": data}

    async def list(self, _: Any) -> Any:
        self.asked.append("list")
        raise self.refusals.pop(0)


@pytest.mark.parametrize("memory", [None, RebalanceMemory(past=(PLAN,))])
async def test_without_a_plan_it_is_one_read(memory: RebalanceMemory | None) -> None:
    client = FakeClient(memory)
    await turned_off.tidy(client)  # type: ignore[arg-type]
    assert client.asked == ["get"]


async def test_without_the_right_it_says_how_to_take_cordons_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusals = (ServerUnavailable(503, "", "not now"), Forbidden(403, "Forbidden", "nodes"))
    client = FakeClient(RebalanceMemory(plan=PLAN), *refusals)
    with caplog.at_level(logging.WARNING):
        await turned_off.tidy(client, retry=0.0)  # type: ignore[arg-type]
    assert client.refusals == []
    assert "kubectl uncordon" in caplog.messages[-1]
