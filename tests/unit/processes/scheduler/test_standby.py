"""The loop of the term to come goes by the configuration in force."""

import asyncio
from typing import Any

from alnair.processes.scheduler.standby import Standby


class FakeLoop:
    """Keeps what was asked of it."""

    def __init__(self, by: str) -> None:
        self.by = by
        self.follows = asyncio.Event()

    async def take_in(self) -> None:
        pass

    async def stand_by(self) -> None:
        self.follows.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.follows.clear()


class Configured:
    """Makes loops by what is in force; may be held up in it."""

    def __init__(self) -> None:
        self.in_force = "first"
        self.changed = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.made: list[Any] = []

    def change(self, to: str) -> None:
        self.in_force = to
        self.changed.set()

    async def make(self) -> Any:
        by = self.in_force
        await self.may_go_on.wait()
        self.made.append(FakeLoop(by))
        return self.made[-1]


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


async def test_who_is_elected_goes_on_with_what_stood_by_and_the_next_term_has_another() -> None:
    configured = Configured()
    standby = Standby(configured.make, configured.changed)
    await standby.prepare()
    waiting = asyncio.create_task(standby.run())
    await turns()
    (first,) = configured.made
    assert first.follows.is_set()
    await ended(waiting)
    assert await standby.take() is first
    assert not first.follows.is_set()
    assert await standby.take() is configured.made[1]


async def test_another_configuration_makes_it_anew_while_it_waits() -> None:
    configured = Configured()
    standby = Standby(configured.make, configured.changed)
    waiting = asyncio.create_task(standby.run())
    await turns()
    configured.change("second")
    await turns()
    first, second = configured.made
    assert (first.follows.is_set(), second.follows.is_set()) == (False, True)
    assert second.by == "second"
    await ended(waiting)
    configured.change("third")  # between the two
    assert (await standby.take()).by == "third"


async def test_one_that_was_being_made_anew_at_the_election_is_not_the_one_before() -> None:
    configured = Configured()
    standby = Standby(configured.make, configured.changed)
    waiting = asyncio.create_task(standby.run())
    await turns()
    configured.may_go_on.clear()
    configured.change("second")
    await turns()
    await ended(waiting)
    configured.may_go_on.set()
    assert (await standby.take()).by == "second"
