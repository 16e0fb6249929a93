"""Work that is done at a changing speed, and what of it is lost."""

import math
from typing import Final

from alnair.sim.jobs import Job

#: Seconds; of two moments nearer to each other than this, neither comes first.
_INSTANT: Final = 1e-9


class Member:
    """A pod's part in its task.

    Attributes:
        uid: of the pod.
        task: that it works on.
        gpus: uuids of the GPUs that it uses; empty while it has no node.
        node: where it is, empty if nowhere.
        works: it is on a node and is not being evicted.
        rate: its speed on its GPUs as a part of its speed alone.
        util: GPUs that it keeps busy at full speed: half of the time of two is 1.
        worked: seconds that it has worked, those at half speed count half.
    """

    __slots__ = ("gpus", "node", "rate", "task", "uid", "util", "worked", "works")

    def __init__(self, uid: str, task: "Task") -> None:
        self.uid = uid
        self.task = task
        self.gpus: tuple[str, ...] = ()
        self.node = ""
        self.works = False
        self.rate = 1.0
        self.util = 0.0
        self.worked = 0.0


class Task:
    """Work that one pod does, or all pods of a job together.

    Args:
        job: whose work it is.
        index: of the pod whose work it is; None = all pods do it together.
        now: seconds since the epoch.

    Attributes:
        members: the pods that are there now by uid, those without a node among them.
        done: seconds of work that count, at the speed of running alone with all pods.
        executed: seconds of work done, those lost again among them.
        rate: seconds of work done in a second.
        version: changes with the rate and when work is lost; what was foreseen before is void.
        foreseen: the version for which the end was foreseen.
        finished: all is done.
    """

    __slots__ = (
        "_needed",
        "_pace",
        "_since",
        "done",
        "executed",
        "finished",
        "foreseen",
        "index",
        "job",
        "members",
        "rate",
        "version",
    )

    def __init__(self, job: Job, index: int | None, now: float) -> None:
        self.job = job
        self.index = index
        self.members: dict[str, Member] = {}
        self.done = 0.0
        self.executed = 0.0
        self.rate = 0.0
        self.version = 0
        self.foreseen = -1
        self.finished = False
        self._since = now
        self._needed = 1
        self._pace = 0.0
        if index is None and job.elastic is not None:
            self._needed = job.elastic.least
        elif index is None and job.gang is not None:
            self._needed = min(job.gang.min_member, len(job.pods))

    def follow(self, now: float) -> None:
        """Work at the old speed until now, and at that of the members from then on.

        Pods of one job wait for one another, so all work at the speed of the slowest.
        """
        self.integrate(now)
        working = [member for member in self.members.values() if member.works]
        self._pace = min((member.rate for member in working), default=0.0)
        rate = self._speed(len(working)) * self._pace
        if rate != self.rate:
            self.rate = rate
            self.version += 1

    def integrate(self, now: float) -> None:
        """Do the work of the time until now; call it before a pod begins or ceases to work."""
        seconds = now - self._since
        self._since = now
        if self.rate <= 0 or seconds <= 0:
            return
        self.done += self.rate * seconds
        self.executed += self.rate * seconds
        for member in self.members.values():
            if member.works:
                member.worked += self._pace * seconds

    def end(self, now: float) -> float:
        """Return when the work is done at the present speed, seconds since the epoch."""
        if self.rate <= 0:
            return math.inf
        return now + max(0.0, self.job.duration - self.done) / self.rate

    def finish(self, now: float) -> None:
        """Note that all is done."""
        self.integrate(now)
        # What rounding has left or added.
        self.executed += self.job.duration - self.done
        self.done = self.job.duration
        self.finished = True
        self.rate = 0.0
        self.version += 1

    def lose(self, now: float, checkpoint: float) -> float:
        """Fall back to the last checkpoint, since a pod went away; returns the work that is lost.

        Args:
            now: seconds since the epoch.
            checkpoint: seconds of work between checkpoints; 0 = there are none.
        """
        self.integrate(now)
        kept = math.floor(self.done / checkpoint + _INSTANT) * checkpoint if checkpoint else 0.0
        lost = self.done - min(kept, self.done)
        self.done -= lost
        self.version += 1
        return lost

    def _speed(self, pods: int) -> float:
        """Return the speed with so many pods as a multiple of that with all."""
        if pods < self._needed or not pods:
            return 0.0
        if self.index is not None:
            return 1.0
        elastic = self.job.elastic
        if elastic is not None and elastic.speeds:
            return elastic.speeds[min(pods, len(elastic.speeds)) - 1]
        return pods / len(self.job.pods)
