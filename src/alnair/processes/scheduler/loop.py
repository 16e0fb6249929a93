"""The scheduling loop: drain what happened, step the engine, carry out its actions."""

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from alnair.live.engine_feed import Feed
from alnair.model.action import Action, Evict
from alnair.processes.scheduler.actuator import Actuator
from alnair.processes.scheduler.dry_run import DryRunActuator
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.engine.events import Event, PluginStates

#: Bindings decided and not yet answered. More would only wait, while the cluster changes under
#: them.
IN_FLIGHT = 64
#: Events taken in at once, so that answers are not kept waiting behind a long list.
_BATCH = 1000
#: Seconds between looks at whether waiting pods are refused for other reasons than they were told.
REFUSAL_UPDATE_SECONDS = 10.0


class Decisions:
    """The last decisions: what they were, and how long they took."""

    def __init__(self, kept: int = 200_000, actions: int = 2_000) -> None:
        self._kept: deque[tuple[float, float]] = deque(maxlen=kept)
        #: The last actions, and when they were decided (seconds since the epoch).
        self.actions: deque[tuple[float, Action]] = deque(maxlen=actions)

    def add(self, now: float, seconds: list[float]) -> None:
        """Note decisions made by now (seconds since the epoch)."""
        self._kept.extend((now, s) for s in seconds)

    def note(self, now: float, action: Action) -> None:
        """Note what was decided."""
        self.actions.append((now, action))

    def last(self, count: int) -> list[tuple[float, Action]]:
        """Return the last actions, oldest first."""
        return list(self.actions)[-count:] if count else []

    def since(self, start: float) -> list[float]:
        """Return how long the decisions since then took, in seconds, ascending."""
        return sorted(seconds for when, seconds in self._kept if when >= start)


class Loop:
    """Drives one engine: keeps it as the cluster is, and lets it decide while this process leads.

    Args:
        engine: new.
        feed: what happens.
        decisions: keeps what was decided.

    Attributes:
        engine: the one that is driven.
        decides: whether it knows all that there was at the start of its term.
    """

    def __init__(self, engine: Engine, feed: Feed, decisions: Decisions) -> None:
        self.engine = engine
        self._feed = feed
        self._decisions = decisions
        self._begun = False
        self.decides = False
        self._refusals_due = 0.0

    async def take_in(self) -> None:
        """Take in all that there is, or what has happened since; nothing is decided."""
        feed = self._feed
        if not self._begun:
            feed.inbox.clear()
            feed.inbox.extend(feed.everything())
            self._begun = feed.listening = True
        while feed.inbox:
            self.engine.learn(self._batch(), time.time())
            await asyncio.sleep(0)

    async def stand_by(self) -> None:
        """Take in what happens, until cancelled: `run` may follow at any moment."""
        while True:
            await self.take_in()
            self._feed.wake.clear()
            await self._feed.wake.wait()

    async def run(
        self, actuator: Actuator | DryRunActuator, learned: Mapping[str, Any] | None = None
    ) -> None:
        """Schedule until cancelled.

        Args:
            actuator: carries out what is decided.
            learned: what plugins had learned in the term before, by their names.
        """
        try:
            # Nothing is decided before all that is there has been counted.
            await self.take_in()
            if learned:
                self.engine.learn([PluginStates(learned)], time.time())
            self.decides = True
            while True:
                self._step(actuator)
                await self._pause()
        finally:
            self._feed.listening = False

    def _step(self, actuator: Actuator | DryRunActuator) -> None:
        now = time.time()
        room = IN_FLIGHT - self.engine.in_flight
        for action in self.engine.step(self._batch(), now, limit=max(0, room)):
            self._decisions.note(now, action)
            if isinstance(action, Evict):
                self.engine.counters.evicted(action.reason)
            actuator.carry_out(action)
        if now >= self._refusals_due:
            self._refusals_due = now + REFUSAL_UPDATE_SECONDS
            for action in self.engine.update_refusals():
                self._decisions.note(now, action)
                actuator.carry_out(action)
        if self.engine.decision_seconds:
            self._decisions.add(now, self.engine.decision_seconds)
            self.engine.decision_seconds.clear()

    def _batch(self) -> list[Event]:
        inbox = self._feed.inbox
        return [inbox.popleft() for _ in range(min(len(inbox), _BATCH))]

    async def _pause(self) -> None:
        """Let the answers in; wait for news if there is nothing to do now."""
        await asyncio.sleep(0)
        if self._feed.inbox:
            return
        self._feed.wake.clear()
        due = self.engine.next_wake(time.time())
        blocked = self.engine.in_flight >= IN_FLIGHT
        if due is not None and due <= time.time() and not blocked:
            return
        if self.engine.waiting:
            due = self._refusals_due if due is None else min(due, self._refusals_due)
        timeout = None if due is None or blocked else max(0.0, due - time.time())
        try:
            async with asyncio.timeout(timeout):
                await self._feed.wake.wait()
        except TimeoutError:
            return
