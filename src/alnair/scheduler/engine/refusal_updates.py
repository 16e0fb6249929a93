"""Writes FailedScheduling anew for waiting pods whose reasons have changed.

A pod that fits nowhere is tried again when a change may help its class. Other changes may give it
other reasons to wait (all free nodes get a taint), and nobody would learn of those: so now and then
each waiting class is asked what refuses it. Nothing is tried, and nothing is decided.
"""

from typing import Final

from alnair.model.action import Report
from alnair.scheduler.framework.refusal_message import refusal_message
from alnair.scheduler.placement.context import EngineContext
from alnair.scheduler.queue.unit import ClassKey
from alnair.scheduler.state.accounts import Record
from alnair.scheduler.state.objects.elastic_quotas import KIND as QUOTA

#: Classes that are asked at once; the others come at the next times.
LOOKS: Final = 64
#: Owners that are told at once, so that a large class does not fill the way to the API server.
MOST: Final = 64
_NO_DIGITS: Final = str.maketrans("", "", "0123456789")


def without_counts(message: str) -> str:
    """Return what of a refusal is news: the counts of a full cluster change with every pod."""
    return message.translate(_NO_DIGITS)


class RefusalUpdates:
    """Compares what waiting lone pods were told with what refuses them now.

    Args:
        context: where they wait, and what all nodes are worth to them.
    """

    def __init__(self, context: EngineContext) -> None:
        self._queue = context.queue
        self._context = context
        self._left: list[ClassKey] = []

    def reports(self) -> list[Report]:
        """Return what some of the owners have not heard yet."""
        self._left = self._left or self._queue.waiting_classes()
        found: list[Report] = []
        for _ in range(min(LOOKS, len(self._left))):
            key = self._left.pop()
            evaluation = self._context.evaluate(key)
            if evaluation.refusal is None and evaluation.best() is not None:
                continue  # something else keeps it waiting: a reservation, or its turn
            message = refusal_message(evaluation)
            for record in self._queue.waiting(key):
                if not _knows(record, message):
                    record.message, record.refused_by = (
                        without_counts(message),
                        evaluation.refused_by(),
                    )
                    found.append(Report(record.pod, "FailedScheduling", message))
                    if len(found) == MOST:
                        self._left.append(key)
                        return found
        return found


def _knows(record: Record, message: str) -> bool:
    # What preemption said follows the reasons.
    return record.refused_by == (QUOTA,) or record.message.startswith(without_counts(message))
