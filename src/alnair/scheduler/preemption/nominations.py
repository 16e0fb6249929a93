"""Nominations: room held for pods until the victims that they are waiting for have left.

As in kube-scheduler, the room is held against pods of the same or a lower priority; pods of a
higher one need not care. So while a pod is decided on, the nominations that bind it are booked, and
none are between decisions.
"""

from collections.abc import Collection, Iterator

from alnair.model.workload import Pod
from alnair.scheduler.state.accounts import Accounts, Record, State
from alnair.scheduler.state.gpus.devices import Booking
from alnair.scheduler.state.gpus.gpu_assignment import guess


class Nomination:
    """A pending pod and the node on which room is held for it."""

    __slots__ = ("bookings", "ghost", "node", "reclaimed", "record")

    def __init__(
        self,
        record: Record,
        node: str,
        bookings: tuple[Booking, ...] | None,
        *,
        reclaimed: bool = False,
    ) -> None:
        self.record = record
        #: Room for pods within their quota's `min` is held against pods of any priority: who
        #: borrowed it would otherwise be pushed out again.
        self.reclaimed = reclaimed
        self.node = node
        #: Its GPUs; None if it is only known which node.
        self.bookings = bookings
        #: What stands for the pod in the books at this moment, if anything does.
        self.ghost: Record | None = None


class Nominations:
    """Nominations by pod.

    Args:
        accounts: the books.
    """

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._by_uid: dict[str, Nomination] = {}
        self._held = False

    def __len__(self) -> int:
        return len(self._by_uid)

    def __iter__(self) -> Iterator[Nomination]:
        return iter(list(self._by_uid.values()))

    def node(self, pod: Pod) -> str:
        """Return the node on which room is held for the pod, or an empty text."""
        nomination = self._by_uid.get(pod.uid)
        return nomination.node if nomination else ""

    def on(self, node: str) -> list[Nomination]:
        """Return the nominations to a node."""
        return [n for n in self._by_uid.values() if n.node == node]

    def reclaimed(self, pod: Pod) -> bool:
        """Return whether the room held for the pod was taken back by quota."""
        nomination = self._by_uid.get(pod.uid)
        return nomination is not None and nomination.reclaimed

    def add(
        self,
        record: Record,
        node: str,
        bookings: tuple[Booking, ...] | None,
        *,
        reclaimed: bool = False,
    ) -> None:
        """Hold room for a pod, and no more where it was held before."""
        self.drop(record.pod.uid)
        self._by_uid[record.pod.uid] = Nomination(record, node, bookings, reclaimed=reclaimed)

    def drop(self, uid: str) -> Nomination | None:
        """Hold no room for the pod any more; returns what was held."""
        nomination = self._by_uid.pop(uid, None)
        if nomination:
            self._release(nomination)
        return nomination

    def hold(self, priority: int, own: Collection[str]) -> None:
        """Book all room that a decision on pods of this priority must respect.

        Args:
            priority: of the pods that are decided on.
            own: their uids; what is held for themselves is free to them.
        """
        for nomination in self._by_uid.values():
            pod = nomination.record.pod
            if (pod.priority >= priority or nomination.reclaimed) and pod.uid not in own:
                self._book(nomination)
            else:
                self._release(nomination)
        self._held = bool(self._by_uid)

    def let_go(self) -> None:
        """Book no held room any more."""
        if self._held:
            for nomination in self._by_uid.values():
                self._release(nomination)
            self._held = False

    def _book(self, nomination: Nomination) -> None:
        accounts = self._accounts
        row = accounts.columns.row_of.get(nomination.node)
        if nomination.ghost or row is None:
            return
        pod = nomination.record.pod
        bookings = nomination.bookings
        slots = len(accounts.devices.gpus[row])
        if bookings is None or any(b.slot >= slots for b in bookings):
            bookings = guess(pod, row, accounts.devices)
        ghost = nomination.ghost = Record(pod)
        ghost.expected = True
        accounts.place(ghost, nomination.node, State.ASSUMED, 0.0, bookings)

    def _release(self, nomination: Nomination) -> None:
        if nomination.ghost:
            self._accounts.release(nomination.ghost, State.PENDING)
            nomination.ghost = None
