"""What if these pods were gone: they are lifted off the books for a moment and put back."""

from types import TracebackType
from typing import Self

from alnair.scheduler.state.accounts import Accounts, Record, RemovedBooking


class WithoutPods:
    """Pods lifted off the books; leaving the `with` block puts them all back.

    Args:
        accounts: the books.
        unseen: nothing but filters reads the books meanwhile, so that afterwards nobody needs to
            know that rows changed and changed back.
    """

    def __init__(self, accounts: Accounts, *, unseen: bool = False) -> None:
        self._accounts = accounts
        self._lifted: dict[str, tuple[Record, RemovedBooking]] = {}
        self._orders: dict[int, list[str]] = {}
        log = accounts.columns.booked
        # Pods put back in another order may get other NUMA zones, which evaluations must see.
        self._mark = (log.start, log.end) if unseen and not accounts.zones.any else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.undo()

    def lift(self, record: Record) -> None:
        """Take a booked pod off the books."""
        row = record.row
        self._orders.setdefault(row, list(self._accounts.on_row[row]))
        self._lifted[record.pod.uid] = (record, self._accounts.lift(record))

    def row(self, record: Record) -> int:
        """Return the row that a lifted pod was on."""
        return self._lifted[record.pod.uid][1].row

    def put_back(self, record: Record) -> None:
        """Book a lifted pod again, as it was."""
        self._accounts.put_back(*self._lifted.pop(record.pod.uid))

    def undo(self) -> None:
        """Put all pods back."""
        for record, lifted in self._lifted.values():
            self._accounts.put_back(record, lifted)
        self._lifted.clear()
        for row, order in self._orders.items():
            # Who came first matters when pods have crossed.
            on_row = self._accounts.on_row[row]
            first = {uid: on_row[uid] for uid in order if uid in on_row}
            self._accounts.on_row[row] = {**first, **on_row}
        self._orders.clear()
        log = self._accounts.columns.booked
        if self._mark and self._mark[0] == log.start:
            del log.rows[self._mark[1] - log.start :]
