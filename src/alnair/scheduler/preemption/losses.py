"""What is lost when pods go: what is somebody's own, whole gangs, and work.

It orders the pods of one node by how dear they are, and sets of victims by what they cost; the
order is that of docs/concepts/preemption.md.
"""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from alnair.model.workload import Pod
from alnair.scheduler.preemption.gang_victims import Units
from alnair.scheduler.preemption.reclaim import Reclaim
from alnair.scheduler.state.accounts import Accounts, Record

#: Priority that an idle pod counts with: below all others.
IDLE: Final = -(2**31) - 1
#: Added to priorities before they are summed, so that fewer pods are always a smaller sum.
SHIFT: Final = 2**31
#: GPU seconds: work is compared in steps of a tenth of a GPU hour, so that a little less of it is
#: not worth another pod.
STEP: Final = 360.0

Rank = Callable[[Record], int]
Cost = tuple[float, ...]


def gpus_held(pod: Pod, memory: float) -> float:
    """Return how many GPUs a pod on a node holds; a slice counts as its part of one.

    Args:
        pod: on a node.
        memory: of the largest GPU of the node, MiB; 0 if that is not known.
    """
    demand = pod.spec.gpu
    if demand is None:
        return 0.0
    part = demand.compute / 100.0
    if demand.memory_mib:
        part = max(part, demand.memory_mib / memory if memory else 1.0)
    return demand.whole + min(part, 1.0)


def most_memory(accounts: Accounts, row: int) -> float:
    """Return the memory of the largest GPU of a row, MiB; 0 if it has none."""
    return float(max((gpu.memory_mib for gpu in accounts.devices.gpus[row]), default=0))


def unsaved_since(pod: Pod, now: float) -> float:
    """Return since when the work of a pod is not saved, in seconds since the epoch; at most now.

    A checkpoint that lies in the future is none.
    """
    saved = pod.saved_at if pod.saved_at <= now else 0.0
    return min(now, max(pod.started or pod.bound_at or now, saved))


class Losses:
    """What the pods that may go for one preemptor are worth.

    Args:
        accounts: the books.
        units: the gangs among the pods.
        reclaim: what quotas say; None if there are none.
        rank: the priority that a pod counts with.
        asked: GPUs that the preemptor asks for, with those of its gang that wait beside it.
        away: uids of pods that go anyway.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        accounts: Accounts,
        units: Units,
        reclaim: Reclaim | None,
        rank: Rank,
        *,
        asked: float,
        away: Collection[str],
        now: float,
    ) -> None:
        self._accounts = accounts
        self._units = units
        self._reclaim = reclaim
        self._asked = asked
        self._away = away
        self._now = now
        self.rank = rank
        #: Per pod, as found so far: GPUs held, and the work that it alone would lose.
        self._alone: dict[str, tuple[float, float]] = {}
        #: Per pod: whether its gang goes with it, and the work and GPUs of all who go.
        self._together: dict[str, tuple[bool, float, float]] = {}
        self._least: dict[str, Cost] = {}
        #: By row.
        self._memory: dict[int, float] = {}

    def work(self, record: Record) -> float:
        """Return the work that a pod alone would lose, in GPU seconds; idle pods lose none."""
        return self._of_pod(record)[1]

    def in_order(self, records: Iterable[Record], *, per_gpu: bool = False) -> list[Record]:
        """Return pods that may go, the dearest first.

        By priority; then those that are somebody's own; those that no gang can spare; those whose
        gang would break; by the work that is lost; and those that have run longest.

        Args:
            records: of one node.
            per_gpu: what counts of work is how much each of their GPUs loses.
        """
        records = list(records)
        if self._is_plain(records):
            return sorted(records, key=lambda r: (-self.rank(r), r.pod.started or math.inf))
        found = []
        for record in records:
            in_gang, work, gpus = self._with_its_gang(record)
            if per_gpu:
                work /= gpus or 1.0
            started = record.pod.started or math.inf
            found.append((self.rank(record), in_gang, _steps(work), -started, record))
        # Who goes first decides who of a namespace or a gang still goes within its bounds.
        found.sort(key=lambda f: f[:4])
        rising = [record for *_, record in found]
        own = self._reclaim.short_after(rising) if self._reclaim else ()
        spare = self._units.spare_in_turn(rising, self._away)

        def dearness(entry: tuple[int, bool, float, float, Record]) -> tuple[float, ...]:
            rank, in_gang, steps, unstarted, record = entry
            uid = record.pod.uid
            kept = uid not in spare
            return rank, uid in own, kept, in_gang and kept, steps if kept else 0.0, unstarted

        found.sort(key=dearness, reverse=True)
        return [record for *_, record in found]

    def cost(self, victims: Sequence[Record], violations: int) -> Cost:
        """Return what decides between sets of victims, in the order in which it decides.

        Broken budgets; the highest priority; how many of the GPUs that are asked for are
        somebody's own, and whether anything is; whether others go than members that gangs can
        spare; gangs that break; work lost; the sum of priorities; the number of pods; and how early
        the first of the highest priority started.

        Args:
            victims: at least one.
            violations: how many of them break a budget.
        """
        ranks = [self.rank(v) for v in victims]
        highest = max(ranks)
        started = min(
            v.pod.started or math.inf for v, r in zip(victims, ranks, strict=True) if r == highest
        )
        total = sum(r + SHIFT for r in ranks if r != IDLE)  # an idle pod adds nothing
        if self._is_plain(victims):
            return violations, highest, 0.0, False, True, 0, 0.0, total, len(victims), -started
        broken, spare = self._units.broken(victims, self._away)
        kept = [v for v in victims if v.pod.uid not in spare]
        own = 0.0
        owned = self._reclaim.owned(victims) if self._reclaim else {}
        if owned:
            own = sum(owned.get(v.pod.uid, 0.0) * self._of_pod(v)[0] for v in victims)
            own = round(min(own, self._asked), 6)
        return (
            violations,
            highest,
            own,
            bool(owned),
            bool(kept),
            broken,
            _steps(sum(map(self.work, kept))),
            total,
            len(victims),
            -started,
        )

    def least(self, record: Record) -> Cost:
        """Return what victims cost at least if this pod is one of them: all costs only add up."""
        found = self._least.get(record.pod.uid)
        if found is None:
            found = self._least[record.pod.uid] = self.cost([record], 0)
        return found

    def _is_plain(self, records: Iterable[Record]) -> bool:
        """Return whether neither quotas nor gangs nor work tell pods from one another."""
        return self._reclaim is None and not any(r.group or r.pod.spec.gpu for r in records)

    def _with_its_gang(self, record: Record) -> tuple[bool, float, float]:
        found = self._together.get(record.pod.uid)
        if found is None:
            gang = self._units.gang(record, self._away) if record.group else ()
            gpus = work = 0.0
            for pod in gang or (record,):
                held, lost = self._of_pod(pod)
                gpus += held
                work += lost
            found = self._together[record.pod.uid] = bool(gang), work, gpus
        return found

    def _of_pod(self, record: Record) -> tuple[float, float]:
        pod = record.pod
        if pod.spec.gpu is None:
            return 0.0, 0.0
        found = self._alone.get(pod.uid)
        if found is None:
            row = self._accounts.columns.row_of.get(record.node, -1)  # it may be off the books
            memory = self._memory.get(row)
            if memory is None:
                memory = most_memory(self._accounts, row) if row >= 0 else 0.0
                self._memory[row] = memory
            gpus = gpus_held(pod, memory)
            seconds = self._now - unsaved_since(pod, self._now)
            found = gpus, 0.0 if self.rank(record) == IDLE else gpus * seconds
            self._alone[pod.uid] = found
        return found


def _steps(work: float) -> float:
    # Sums of the same work in another order must not differ by a rounding error.
    return math.floor(work / STEP + 1e-9)
