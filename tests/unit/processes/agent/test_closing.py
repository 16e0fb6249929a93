"""Who was bound before the node is closed may start, as long as that takes no more than seconds."""

import asyncio
import logging
import time
from typing import cast

import pytest

from alnair.processes.agent import closing
from alnair.processes.agent.closing import Coming, close_node
from alnair.processes.agent.inventory import InventoryPublisher


class Publisher:
    """Tells at once, or never."""

    def __init__(self, *, answers: bool = True) -> None:
        self.told = ""
        self._answers = answers

    async def close(self, reason: str) -> None:
        if not self._answers:
            await asyncio.Event().wait()
        self.told = reason


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TELL", "ON_THE_WAY", "_LOOK"):
        monkeypatch.setattr(closing, name, getattr(closing, name) / 50)


async def close(publisher: Publisher, found: list[Coming]) -> int:
    """How often was asked, with these answers one after the other, the last again and again."""
    asked = 0

    def coming() -> Coming:
        nonlocal asked
        asked += 1
        return found[min(asked, len(found)) - 1]

    await close_node(cast("InventoryPublisher", publisher), coming)
    return asked


async def test_an_agent_ends_when_all_who_were_bound_have_started() -> None:
    publisher, new, admitted = Publisher(), Coming({"b"}, {"a", "b"}), Coming((), {"b"})
    asked = await close(publisher, [Coming(), new, new, admitted, Coming()])
    assert asked >= 5, "one that came late is waited for, too"
    assert "agent" in publisher.told


async def test_who_came_while_the_agent_was_held_up_is_waited_for() -> None:
    answers = [Coming(), Coming({"late"}, {"late"}), Coming()]
    seen = []

    def coming() -> Coming:
        if not seen:
            time.sleep(2 * closing.ON_THE_WAY)
        seen.append(answers[min(len(seen), 2)])
        return seen[-1]

    await close_node(cast("InventoryPublisher", Publisher()), coming)
    assert seen[1:3] == answers[1:]


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (Coming((), {"a"}), "0 pods are not admitted, 1 not started"),
        (Coming({"a"}, {"a"}), "1 pods are not admitted, 1 not started"),
    ],
)
async def test_a_pod_that_cannot_start_is_not_waited_for_without_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, left: Coming, said: str
) -> None:
    for name in ("ADMIT", "START"):
        monkeypatch.setattr(closing, name, getattr(closing, name) / 50)
    with caplog.at_level(logging.INFO):
        await close(Publisher(), [left])
    assert said in caplog.text


async def test_where_nobody_can_be_told_nobody_is_waited_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert await close(Publisher(answers=False), [Coming((), {"a"})]) == 0
    assert "could not be told" in caplog.text
