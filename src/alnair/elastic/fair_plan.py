"""How many workers each job has: a fair, greedy plan for all jobs together.

In this order, on a room in which placements are tried:

1. Bounds: nobody has more than is wanted, nor less than its least.
2. What has been given and not been placed yet keeps its room, so that nobody else grows into it. If
   the scheduler says that it fits nowhere, the job has one worker less, down to its least.
3. Who waits is let in with its least, by priority and then by age. If that does not fit, workers
   beyond the least of others leave: of those of lower priority first, then of who has most GPUs,
   and only if it helps, and no more than are needed.
4. Free GPUs go, one worker at a time, to who has the fewest GPUs.
5. A job that wants more gets workers of one that would still have as many GPUs as it.

A size changes only for a reason, each step makes the distribution fairer, and a running job is made
larger at most every so often: so it comes to rest. What goodput is best is not asked here: a plan
that asks takes the place of `plan`.
"""

import heapq
import math
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from alnair.model.elastic_plan import Claim, Cluster, ElasticDemand, Plan, SizeChange
from alnair.model.plurals import counted

#: GPUs that count for a worker that takes none, so that such jobs share fairly, too.
_NO_GPU: Final = 1e-3
#: Richer jobs that are asked for a worker before a poor one is left as it is: each try is a
#: placement.
_ASKED: Final = 8
_ROUNDING: Final = 1e-9


class PlanOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to plan.

    Attributes:
        grow_after: Seconds since its last resize after which a running job is made larger, or
            smaller for the sake of fairness: each costs the training a pause.
        reduce_after: Seconds that a job has its size before it is made smaller because the
            scheduler finds no place for it: so long others that leave may make room. Where the
            room says that it fits, `grow_after`.
    """

    grow_after: float = 30.0
    reduce_after: float = 5.0


def plan(
    jobs: Sequence[ElasticDemand],
    cluster: Cluster,
    now: float,
    options: PlanOptions | None = None,
) -> Plan:
    """Return how many workers every job shall have.

    Args:
        jobs: All that have not ended, in any order.
        cluster: Where there is room; what is tried in it stays in it.
        now: Seconds since the epoch.
        options: How.
    """
    making = _Making(jobs, cluster, now, options or PlanOptions())
    making.bound()
    waiting = making.hold()
    making.admit(waiting)
    making.grow()
    making.level()
    return making.result()


class _Size:
    """A job and the size that it shall have."""

    __slots__ = ("calm", "job", "missing", "reason", "size", "text", "unit")

    def __init__(self, job: ElasticDemand, *, calm: bool) -> None:
        self.job = job
        self.size = job.size
        self.unit = max(job.gpus, _NO_GPU)
        #: It may be resized for no other sake than its own, or that of fairness.
        self.calm = calm
        #: Workers that it was given and that fit nowhere now.
        self.missing = 0
        self.reason = self.text = ""

    @property
    def gpus(self) -> float:
        """GPUs of all its workers."""
        return self.size * self.unit

    @property
    def spare(self) -> int:
        """Workers that others could have."""
        return max(0, self.size - self.job.least) if not self.missing else 0

    def become(self, size: int, reason: str, text: str) -> None:
        """Have another size; the first reason is the one that is told."""
        if size != self.size and not self.reason:
            self.reason, self.text = reason, text
        self.size = size


class _Waiting(msgspec.Struct, frozen=True):
    """Who waits for a place: what, and so many workers of it; None for a claim."""

    what: ElasticDemand | Claim
    need: int
    size: _Size | None


class _Making:
    """A plan in the making."""

    def __init__(
        self,
        jobs: Iterable[ElasticDemand],
        cluster: Cluster,
        now: float,
        options: PlanOptions,
    ) -> None:
        self._room = cluster.room
        self._claims = cluster.claims
        self._now = now
        self._options = options
        self._again = math.inf
        #: In this order, as long as nobody's size changes; empty when it has to be made anew.
        self._richest_first: list[_Size] = []
        #: With this priority, and below, nobody finds anybody who can spare a worker.
        self._exhausted = -math.inf
        self._sizes = [_Size(job, calm=self._is_calm(job)) for job in sorted(jobs, key=_order)]

    def result(self) -> Plan:
        """Return what was decided."""
        changes = tuple(
            SizeChange(one.job.key, one.job.size, one.size, one.reason, one.text)
            for one in self._sizes
            if one.size != one.job.size
        )
        sizes = {one.job.key: one.size for one in self._sizes}
        return Plan(sizes, changes, self._again if math.isfinite(self._again) else None)

    def bound(self) -> None:
        """Hold all sizes to what their users say; who leaves already gives the room back."""
        for one in self._sizes:
            job = one.job
            if one.size > job.wish:
                one.become(job.wish, "LessWanted", f"no more than {job.wish} workers are wanted")
            elif 0 < one.size < job.least:
                one.become(
                    job.least, "LeastRaised", f"it needs {counted(job.least, 'worker')} at least"
                )
            if job.placed > one.size:
                self._room.release(job.key, job.placed - one.size)

    def hold(self) -> list[_Waiting]:
        """Keep room for what was given and is not placed yet; returns who waits, in order."""
        waiting = [_Waiting(claim, 1, None) for claim in self._claims]
        for one in self._sizes:
            job = one.job
            if not one.size:
                waiting.append(_Waiting(job, job.least, one))
                continue
            fits = self._places_missing(one)
            # The scheduler's word counts for more than the room, which may be of another moment.
            patience = self._options.grow_after if fits else self._options.reduce_after
            if job.unschedulable and one.size > job.placed and self._is_due(job, patience):
                if fits:
                    self._room.release(job.key, one.size - job.placed)
                fewer = max(one.size - 1, job.placed, job.least)
                one.become(fewer, "Unschedulable", "one worker less, as they fit nowhere")
                fits = self._places_missing(one)
            if fits:
                continue
            # What has not begun needs all that it was given; what has goes on with its least.
            if job.placed < job.least and (job.started or one.size == job.least):
                waiting.append(_Waiting(job, job.least - job.placed, one))
        return sorted(waiting, key=lambda each: _order(each.what))

    def admit(self, waiting: Iterable[_Waiting]) -> None:
        """Let in who waits, where there is room or others can spare it."""
        for each in waiting:
            key, one = each.what.key, each.size
            if not self._room.place(key, each.need) and not self._make_room(each):
                continue
            if one is None:
                continue
            one.missing = max(0, one.missing - each.need)
            if not one.size:
                one.become(each.need, "Admitted", "there is room for it")

    def grow(self) -> None:
        """Give what is free to who has least."""
        wanting = [(_neediest(one), one) for one in self._sizes if self._may_grow(one)]
        heapq.heapify(wanting)
        while wanting:
            _, one = heapq.heappop(wanting)
            if self._room.place(one.job.key, 1):
                one.become(one.size + 1, "GpusFree", "GPUs are free")
                if one.size < one.job.wish:
                    heapq.heappush(wanting, (_neediest(one), one))

    def level(self) -> None:
        """Move workers from who has most to who has least, while that is fairer."""
        wanting = [(_neediest(one), one) for one in self._sizes if self._may_grow(one)]
        heapq.heapify(wanting)
        while wanting:
            _, poor = heapq.heappop(wanting)
            if self._take_for(poor) and poor.size < poor.job.wish:
                heapq.heappush(wanting, (_neediest(poor), poor))

    # --- parts ------------------------------------------------------------------------------------

    def _places_missing(self, one: _Size) -> bool:
        """Keep room for the workers of a job that have no node; returns whether there is."""
        one.missing = max(0, one.size - one.job.placed)
        if one.missing and not self._room.place(one.job.key, one.missing):
            return False
        one.missing = 0
        return True

    def _make_room(self, waiting: _Waiting) -> bool:
        """Let workers of others leave until it fits; all stay if that does not help."""
        what = waiting.what
        if what.priority <= self._exhausted:
            return False
        givers = [
            (_richest(one), one)
            for one in self._sizes
            if one.spare and one is not waiting.size and one.job.priority <= what.priority
        ]
        if not givers:
            self._exhausted = what.priority
        heapq.heapify(givers)
        left: list[_Size] = []
        fits = False
        while givers and not fits:
            _, giver = heapq.heappop(givers)
            self._room.release(giver.job.key, 1)
            left.append(giver)
            giver.size -= 1
            if giver.spare:
                heapq.heappush(givers, (_richest(giver), giver))
            fits = self._room.place(what.key, waiting.need)
        # Those stay that need not have left, the last first.
        for one in reversed(left):
            if self._room.place(one.job.key, 1):
                one.size += 1
            elif not fits:
                raise RuntimeError(f"a worker of {one.job.key} does not fit where it just was")
            else:
                if not one.reason:
                    one.reason, one.text = "RoomForOthers", f"{what.key} waits for room"
        return fits

    def _take_for(self, poor: _Size) -> bool:
        """Have one richer job give workers to a poorer one; returns whether one did."""
        asked = 0
        for rich in self._by_riches():
            if self._is_poorer(rich, poor):
                break
            if not self._can_give(rich, poor) or asked == _ASKED:
                continue
            asked += 1
            workers = _worth(poor, rich)
            self._room.release(rich.job.key, workers)
            if self._room.place(poor.job.key, 1):
                rich.become(rich.size - workers, "Shared", f"{poor.job.key} has less")
                poor.become(poor.size + 1, "Shared", f"{rich.job.key} has more")
                self._richest_first.clear()
                return True
            if not self._room.place(rich.job.key, workers):
                raise RuntimeError(f"workers of {rich.job.key} do not fit where they just were")
        return False

    def _by_riches(self) -> list[_Size]:
        """Return all jobs, those of lower priority first, and of equals who has most."""
        if not self._richest_first:
            self._richest_first = sorted(self._sizes, key=_richest)
        return self._richest_first

    def _is_poorer(self, one: _Size, poor: _Size) -> bool:
        """Whether neither this one nor any after it can give, as all have too little."""
        if one.job.priority != poor.job.priority:
            return one.job.priority > poor.job.priority
        return one.gpus < poor.gpus + poor.unit - _ROUNDING

    def _can_give(self, rich: _Size, poor: _Size) -> bool:
        """Whether it is fairer that the second has workers of the first, and time for it."""
        workers = _worth(poor, rich)
        if rich is poor or rich.spare < workers or rich.job.priority > poor.job.priority:
            return False
        kept = rich.gpus - workers * rich.unit
        equals = rich.job.priority == poor.job.priority
        if equals and kept < poor.gpus + poor.unit - _ROUNDING:
            return False
        if not rich.calm:
            self._again = min(self._again, rich.job.resized + self._options.grow_after)
        return rich.calm

    def _may_grow(self, one: _Size) -> bool:
        job = one.job
        # What has just been made smaller, or is found to fit nowhere, is not made larger.
        able = job.grows and not one.missing and not job.unschedulable
        wants = able and max(1, job.size) <= one.size < job.wish
        if wants and not one.calm:
            self._again = min(self._again, job.resized + self._options.grow_after)
        return wants and one.calm

    def _is_calm(self, job: ElasticDemand) -> bool:
        fresh = not job.started or job.eager or not job.size
        return fresh or self._now >= job.resized + self._options.grow_after

    def _is_due(self, job: ElasticDemand, after: float) -> bool:
        if self._now >= job.resized + after:
            return True
        self._again = min(self._again, job.resized + after)
        return False


def _order(what: ElasticDemand | Claim) -> tuple[int, float, str]:
    return -what.priority, what.created, what.key


def _neediest(one: _Size) -> tuple[int, float, float, str]:
    return -one.job.priority, one.gpus, one.job.created, one.job.key


def _richest(one: _Size) -> tuple[int, float, float, str]:
    return one.job.priority, -one.gpus, -one.job.created, one.job.key


def _worth(poor: _Size, rich: _Size) -> int:
    """Return how many workers of the second have as many GPUs as one of the first."""
    return max(1, math.ceil(poor.unit / rich.unit - _ROUNDING))
