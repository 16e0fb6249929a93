"""The ranks of one job, look by look: which of them holds up the others.

A look comes when something new is known of every pod, and after a minute at the latest: of who says
nothing new, what was known holds.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from alnair.model.api_types import SlowRank
from alnair.profiler.job_workload import Member, wait_for_each_other
from alnair.profiler.stragglers import Straggler, StragglerDetector

#: Seconds for which something new of each pod is waited for.
PATIENCE: Final = 60.0
#: Looks by which a rank is judged: each is the mean of many steps.
LOOKS: Final = 3


class _Role:
    """Pods that are compared with each other: by their steps' time, and by their own work in it."""

    def __init__(self) -> None:
        self._by_time = StragglerDetector(LOOKS, LOOKS)
        self._by_work = StragglerDetector(LOOKS, LOOKS)
        self._numbers: dict[str, int] = {}
        self._seen: dict[str, float] = {}
        self._at = 0.0
        self.looks = 0

    def take(self, members: Sequence[Member], now: float) -> dict[str, Straggler] | None:
        """Return who is slow, by name; None where it is too early for another look."""
        is_fresh = all(one.at > self._seen.get(one.pod, 0.0) for one in members)
        if not is_fresh and now - self._at < PATIENCE:
            return None
        self._seen, self._at = {one.pod: one.at for one in members}, now
        self.looks += 1
        pods = {self._numbers.setdefault(one.pod, len(self._numbers)): one for one in members}
        times = {number: one.workload.period_s or 0.0 for number, one in pods.items()}
        work = {number: one.workload.busy_s or 0.0 for number, one in pods.items()}
        slow = self._by_time.add(times)
        busy = self._by_work.add(work)
        if not slow and wait_for_each_other(times.values()):
            slow = busy
        return {pods[one.rank].pod: one for one in slow}


class JobRanks:
    """Follows one job.

    Args:
        before: Who was slow, as told by who looked before.

    Attributes:
        slow: Who is slow now.
    """

    def __init__(self, before: Iterable[SlowRank] = ()) -> None:
        self._roles: dict[str, _Role] = {}
        self.slow: tuple[SlowRank, ...] = tuple(before)

    def take(self, members: Iterable[Member], now: float, t: str) -> None:
        """Take in what is known of its pods now.

        Args:
            members: All pods of which something is known.
            now: Seconds since the epoch.
            t: The same, RFC 3339.
        """
        roles: dict[str, list[Member]] = defaultdict(list)
        ranks: dict[str, int | None] = {}
        for one in members:
            roles[one.role].append(one)
            ranks[one.pod] = one.rank
        self._roles = {role: self._roles.get(role) or _Role() for role in roles}
        slow = {one.pod: one for one in self.slow if one.pod in ranks}
        for role, known in roles.items():
            follower = self._roles[role]
            found = follower.take(known, now)
            if found is None or follower.looks < LOOKS:
                continue  # what was known before stands
            for one in known:
                old = slow.pop(one.pod, None)
                if one.pod in found:
                    ratio = float(f"{found[one.pod].slowdown:.3g}")
                    since = old.since if old is not None else t
                    slow[one.pod] = SlowRank(one.pod, ratio, since, ranks[one.pod])
        self.slow = tuple(sorted(slow.values(), key=lambda one: one.pod))
