"""Gangs among the victims: a gang that would fall below its minimum goes whole, or stays.

Members beyond it are spare: they may go alone. The minimum is minMember; of an elastic gang that
was placed once it is `elastic-min`, be it one.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from alnair.scheduler.gangs.gangs import GangKey, Gangs, GangState
from alnair.scheduler.state.accounts import Record


class Units:
    """What pods of gangs cost their gangs.

    Args:
        gangs: all gangs.
    """

    def __init__(self, gangs: Gangs) -> None:
        self._gangs = gangs

    def eligible(
        self, here: list[Record], may_go: Callable[[Record], bool], away: Collection[str]
    ) -> list[Record]:
        """Return those of a row's pods that may go, given what that does to their gangs.

        Args:
            here: pods of one row that may go by themselves, in any order.
            may_go: whether a pod may go by itself.
            away: uids of pods that go anyway.
        """
        lone, by_gang = self._part(here)
        for key, members in by_gang.items():
            state, staying = self._staying(key, away)
            spare = len(staying) - state.min_member
            busy = state.planning or state.clearing
            if spare < len(members) and (busy or not all(map(may_go, _on_nodes(staying)))):
                # It cannot go whole, so only as many as it can spare, the least important ones.
                members.sort(key=lambda r: (-r.pod.priority, r.pod.started))
                members = members[len(members) - max(0, spare) :]
            lone += members
        return lone

    def companions(self, victims: Sequence[Record], away: Collection[str]) -> list[Record]:
        """Return who goes too, because these victims leave too few of their gangs."""
        found: list[Record] = []
        for key, members in self._part(victims)[1].items():
            state, staying = self._staying(key, away)
            lost = {r.pod.uid for r in members}
            left = [r for r in staying if r.pod.uid not in lost]
            if len(left) < state.min_member:
                found += _on_nodes(left)
        return found

    def gang(self, record: Record, away: Collection[str]) -> list[Record]:
        """Return who would go together if the pod's gang broke; nobody if it has none."""
        by_gang = self._part([record])[1]
        return [r for key in by_gang for r in _on_nodes(self._staying(key, away)[1])]

    def spare_in_turn(self, records: Iterable[Record], away: Collection[str]) -> set[str]:
        """Return the uids of those that their gangs can spare if they go in this order."""
        spare: set[str] = set()
        for key, members in self._part(records)[1].items():
            state, staying = self._staying(key, away)
            count = max(0, len(staying) - state.min_member)
            spare.update(r.pod.uid for r in members[:count])
        return spare

    def broken(self, victims: Iterable[Record], away: Collection[str]) -> tuple[int, set[str]]:
        """Return how many gangs break without the victims, and whom the other gangs spare."""
        count, spare = 0, set[str]()
        for key, members in self._part(victims)[1].items():
            state, staying = self._staying(key, away)
            if len(staying) - len(members) < state.min_member:
                count += 1
            else:
                spare.update(r.pod.uid for r in members)
        return count, spare

    def fates(self, keys: Iterable[GangKey]) -> list[int]:
        """Return 1 for gangs that break for sure if any member goes, -1 if they may spare some.

        Else 0: what leaves anyway costs a gang nothing more.
        """
        find = self._gangs.find
        found: list[int] = []
        for key in keys:
            state = find(key)
            if state is None or not state.bound_together:
                found.append(0)
            elif state.min_member < len(state.members):
                found.append(-1)
            else:
                leaving = any(r.evicting or r.pod.deleting for r in state.members.values())
                found.append(0 if leaving else 1)
        return found

    def together(self, victims: Iterable[Record]) -> list[list[Record]]:
        """Part victims into those that can only stay together, keeping their order."""
        victims = list(victims)
        whole: dict[GangKey, list[Record]] = {}
        away = {r.pod.uid for r in victims}
        parts: list[list[Record]] = []
        for victim in victims:
            key = (victim.pod.namespace, victim.group)
            if key in whole:
                whole[key].append(victim)
                continue
            parts.append([victim])
            if victim.group and self._gangs.find(key) is not None:
                state, staying = self._staying(key, away)
                if len(staying) < state.min_member:
                    whole[key] = parts[-1]
        return parts

    def shrunk(self, record: Record) -> str:
        """Return how the elastic gang of an evicted pod goes on; empty if it does not, or is none.

        Args:
            record: of a pod that is marked as evicted, as all who go with it are.
        """
        state = self._gangs.find((record.pod.namespace, record.group)) if record.group else None
        if state is None or not state.elastic:
            return ""
        left = len(state.placed())
        if left < state.min_member:
            return ""
        members = "member" if left == 1 else "members"
        return "elastic gang {}/{} goes on with {} {}, at least {}".format(
            *state.key, left, members, state.min_member
        )

    def _part(self, records: Iterable[Record]) -> tuple[list[Record], dict[GangKey, list[Record]]]:
        lone: list[Record] = []
        by_gang: dict[GangKey, list[Record]] = {}
        for record in records:
            key = (record.pod.namespace, record.group)
            state = self._gangs.find(key) if record.group else None
            if state is None or not state.bound_together or record.evicting or record.pod.deleting:
                lone.append(record)  # what leaves anyway costs its gang nothing more
            else:
                by_gang.setdefault(key, []).append(record)
        return lone, by_gang

    def _staying(self, key: GangKey, away: Collection[str]) -> tuple[GangState, list[Record]]:
        state = self._gangs.of(key)
        return state, [r for r in state.placed() if r.pod.uid not in away]


def _on_nodes(records: Iterable[Record]) -> list[Record]:
    """Return those that are neither done nor on a node that is gone, and they with it."""
    return [r for r in records if r.row >= 0]
