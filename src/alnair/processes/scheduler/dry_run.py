"""Dry-run: takes every action for done and sends nothing; what would have been done is logged."""

import asyncio
import logging

from alnair.live.engine_feed import Feed
from alnair.model.action import Action, Bind, Evict, Nominate, Report, WritePlan
from alnair.scheduler.engine import events

_log = logging.getLogger(__name__)


class DryRunActuator:
    """Stands in for the actuator; has no client, so it cannot write.

    The engine goes on as if its pods were bound. What really becomes of them (another scheduler
    binds them elsewhere) it learns from the cluster, and that counts.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    async def run(self) -> None:
        """Wait until cancelled."""
        await asyncio.Event().wait()

    async def settled(self) -> None:
        """Return at once: nothing is under way."""

    def carry_out(self, action: Action) -> None:
        """Say what would be done, and answer that it was."""
        match action:
            case Bind(pod, node):
                _log.info("would bind %s/%s to %s", pod.namespace, pod.name, node)
                self._feed.put(events.BindDone(pod.uid))
            case WritePlan(gang, plan):
                _log.info("would plan gang %s/%s: %d pods", gang.namespace, gang.name, len(plan))
                self._feed.put(events.PlanDone(gang.namespace, gang.name))
            case Nominate(pod, node):
                _log.info("would hold room for %s/%s on %s", pod.namespace, pod.name, node or "-")
            case Evict(pod, reason, message):
                _log.info("would evict %s/%s (%s): %s", pod.namespace, pod.name, reason, message)
                self._feed.put(events.EvictDone(pod.uid))
            case Report(pod, "FailedScheduling", message):
                _log.info("cannot place %s/%s: %s", pod.namespace, pod.name, message)
