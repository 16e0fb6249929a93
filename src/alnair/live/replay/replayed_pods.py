"""What became of each pod of a replay: created, placed, refused, or gone; no I/O."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

#: "0/N nodes are available: …", as kube-scheduler and ours begin a refusal.
_AVAILABLE: Final = re.compile(r"^\d+/\d+ nodes are available: ")
#: What kube-scheduler appends about preemption says nothing about why the pod does not fit.
_PREEMPTION: Final = re.compile(
    r"[.,] (?:no new claims to deallocate, )?preemption: .*$", re.DOTALL
)
_NEXT: Final = re.compile(r", (?=\d+ )")
_COUNT: Final = re.compile(r"^\d+ ")


class Entry(msgspec.Struct):
    """One pod; times are in seconds of the monotonic clock."""

    uid: str = ""
    #: When the server had acknowledged its creation; None if it was there before.
    created: float | None = None
    node: str = ""
    #: When the binding was seen; None if it was bound before.
    bound: float | None = None
    #: Why it is pending, as its condition says; empty without a verdict.
    refusal: str = ""
    there: bool = False
    lost: int = 0


class Counts(msgspec.Struct, frozen=True):
    """How far a replay is."""

    pods: int
    there: int
    placed: int
    refused: int

    @property
    def undecided(self) -> int:
        """Pods that are there and have neither a node nor a verdict."""
        return self.there - self.placed - self.refused

    @property
    def is_settled(self) -> bool:
        """Every pod has a node or a verdict."""
        return self.placed + self.refused == self.pods


class ReplayedPods:
    """All pods of a replay, by name.

    Attributes:
        moved: When a pod was last created, bound, judged for the first time, or lost.
        waiting_since: Since when no pod was decided although some wait for it.
        gone: Pods that were there and are not any more.
    """

    def __init__(self, names: Iterable[str], now: float) -> None:
        self.entries: dict[str, Entry] = {name: Entry() for name in names}
        self.moved = self.waiting_since = now
        self._there = self._placed = self._refused = 0
        self.gone: list[str] = []

    def counts(self) -> Counts:
        """Return how far the replay is."""
        return Counts(len(self.entries), self._there, self._placed, self._refused)

    def missing(self) -> list[str]:
        """Return the pods that are not there yet, in order."""
        return [name for name, entry in self.entries.items() if not entry.there]

    def acknowledged(self, name: str, now: float) -> None:
        """Note that the server has a pod, which we have just created."""
        entry = self.entries[name]
        entry.created = now
        self.moved = now

    def seen(
        self, name: str, uid: str, node: str, refusal: str, now: float, *, listed: bool
    ) -> None:
        """Note a pod's state.

        Args:
            name: The pod; others than ours are passed over.
            uid: Its identity.
            node: Its node, empty before it is bound.
            refusal: The message of its PodScheduled condition, if that is Unschedulable.
            now: The moment.
            listed: It was found in a list, so when it changed is not known.
        """
        entry = self.entries.get(name)
        if entry is None:
            return
        if entry.uid and entry.uid != uid:
            self._clear(entry)
        entry.uid = uid
        if not entry.there:
            if self._there == self._placed + self._refused:
                self.waiting_since = now
            entry.there = True
            self._there += 1
            self.moved = now
        if node and not entry.node:
            self._refused -= bool(entry.refusal)
            self._placed += 1
            entry.node, entry.refusal = node, ""
            entry.bound = None if listed else now
            self.moved = self.waiting_since = now
        elif refusal and not node:
            if not entry.refusal:
                self._refused += 1
                self.moved = self.waiting_since = now
            entry.refusal = refusal

    def deleted(self, name: str, uid: str, now: float) -> None:
        """Note that a pod has gone."""
        entry = self.entries.get(name)
        if entry is None or entry.uid != uid:
            return
        self._clear(entry)
        entry.lost += 1
        self.gone.append(name)
        self.moved = now

    def listed(self, uids: set[str], now: float) -> None:
        """Note a whole list: what is not in it has gone."""
        for name, entry in self.entries.items():
            if entry.there and entry.uid not in uids:
                self.deleted(name, entry.uid, now)

    def _clear(self, entry: Entry) -> None:
        self._there -= entry.there
        self._placed -= bool(entry.node)
        self._refused -= bool(entry.refusal)
        entry.uid = entry.node = entry.refusal = ""
        entry.created = entry.bound = None
        entry.there = False

    # --- what the report needs ----------------------------------------------------------------

    def reasons(self) -> dict[str, int]:
        """Return how many pods are pending for which reasons, most frequent first."""
        counted = Counter(reason(e.refusal) for e in self.entries.values() if e.refusal)
        return dict(counted.most_common())

    def latencies(self) -> list[float]:
        """Return the seconds from the acknowledged creation to the binding, ascending."""
        return sorted(
            max(0.0, e.bound - e.created)
            for e in self.entries.values()
            if e.bound is not None and e.created is not None
        )

    def pods_per_second(self) -> float | None:
        """Return this run's bindings over the time from its first creation to the last of them."""
        bound = [e.bound for e in self.entries.values() if e.bound is not None]
        created = [e.created for e in self.entries.values() if e.created is not None]
        if not bound or not created or max(bound) <= min(created):
            return None
        return len(bound) / (max(bound) - min(created))


def reason(message: str) -> str:
    """Return a refusal without its numbers of nodes, so that equal causes are equal texts."""
    text = _PREEMPTION.sub("", message.strip())
    if not _AVAILABLE.match(text):
        return text
    causes = _NEXT.split(_AVAILABLE.sub("", text).rstrip("."))
    return ", ".join(sorted({_COUNT.sub("", cause).strip() for cause in causes}))
