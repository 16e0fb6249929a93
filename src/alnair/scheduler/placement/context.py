"""What decisions are made from: the books, queue and gangs that all parts of the engine share."""

from collections.abc import Callable, Mapping

import msgspec

from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.evaluation_cache import Evaluations
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.framework.observers import Observers
from alnair.scheduler.gangs.gangs import Gangs
from alnair.scheduler.gangs.membership import Membership
from alnair.scheduler.metric_counters import SchedulerCounters
from alnair.scheduler.queue.queue import Queue
from alnair.scheduler.queue.unit import ClassKey
from alnair.scheduler.state.accounts import Accounts
from alnair.scheduler.state.objects.elastic_quotas import Quotas


class EngineContext(msgspec.Struct, frozen=True):
    """One engine's state; made whole at once, and never changed but in what its parts hold.

    Attributes:
        accounts: the books.
        evaluations: of classes of pods over these books.
        profiles: by scheduler name.
        quotas: of namespaces.
        queue, gangs, members: what waits, and which pods belong together.
        observers: what plugins learn from what comes and goes.
        counters: where decisions are counted.
        timer: seconds from anywhere, to measure decisions with; None measures nothing.
    """

    accounts: Accounts
    evaluations: Evaluations
    profiles: Mapping[str, Profile]
    quotas: Quotas
    queue: Queue
    gangs: Gangs
    members: Membership
    observers: Observers
    counters: SchedulerCounters
    timer: Callable[[], float] | None = None

    def evaluate(self, key: ClassKey) -> Evaluation:
        """Return what all nodes are worth to a class of pods."""
        scheduler, spec = key
        return self.evaluations.of(spec, self.profiles[scheduler])
