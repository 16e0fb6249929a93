"""Try, roll back, commit: placements that hold only if all of them do.

Every placement is booked at once, so the next one sees it, and can be undone; what is rolled back
leaves the books as they were.
"""

import itertools

import numpy as np
from numpy.typing import NDArray

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.evaluation_cache import Evaluations
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.state.accounts import Accounts, Record, State
from alnair.scheduler.state.gpus.devices import Booking
from alnair.scheduler.state.nodes.columns import Column, Mask


class Statement:
    """Placements of pods that are not yet decided."""

    def __init__(self, accounts: Accounts, evaluations: Evaluations, now: float) -> None:
        self._accounts = accounts
        self._evaluations = evaluations
        self._now = now
        self.placed: list[Record] = []

    def place(
        self, record: Record, profile: Profile, allowed: Mask | NDArray[np.intp] | None = None
    ) -> Evaluation | None:
        """Book the pod on its best node; returns None, or what says why no node will do.

        Args:
            record: the pod.
            profile: under which it is placed.
            allowed: the rows that it may use, as a mask or ascending; None for all.
        """
        evaluation = self._evaluations.of(record.spec, profile)
        if evaluation.refusal is not None:
            return evaluation
        while (row := evaluation.best(allowed)) is not None:
            bookings = self._reserve(record, row, profile)
            if bookings is not None:
                self._book(record, row, bookings, profile)
                return None
            # Filters judge nodes, reserving judges devices: where they disagree, the node is out.
            evaluation.bar(row)
        return evaluation

    def place_on(
        self,
        record: Record,
        profile: Profile,
        node: str,
        bookings: tuple[Booking, ...] | None = None,
    ) -> bool:
        """Book the pod on this node, if it will do: on these GPUs, or on such as are chosen."""
        row = self._accounts.columns.row_of.get(node)
        evaluation = self._evaluations.of(record.spec, profile)
        if row is None or evaluation.refusal is not None or not evaluation.feasible(row):
            return False
        if bookings is None:
            bookings = self._reserve(record, row, profile)
        if bookings is None:
            return False
        before = self._accounts.devices.excess(row)
        self._book(record, row, bookings, profile)
        if self._accounts.devices.excess(row) > before:
            self._accounts.release(self.placed.pop(), State.PENDING)
            return False
        return True

    def rollback(self, checkpoint: int = 0) -> None:
        """Undo all placements after the first `checkpoint` ones."""
        while len(self.placed) > checkpoint:
            self._accounts.release(self.placed.pop(), State.PENDING)

    def _book(
        self, record: Record, row: int, bookings: tuple[Booking, ...], profile: Profile
    ) -> None:
        node = self._accounts.columns.nodes[row]
        assert node is not None  # a row without a node is never feasible
        if record.spec.volumes:
            chosen = (p.claims(record.spec, row, self._accounts.cluster) for p in profile.claimers)
            record.claims = tuple(itertools.chain.from_iterable(chosen))
        self._accounts.place(record, node.name, State.ASSUMED, self._now, bookings)
        self.placed.append(record)

    def _reserve(self, record: Record, row: int, profile: Profile) -> tuple[Booking, ...] | None:
        spec = record.spec
        if spec.gpu is None:
            return ()
        bookings: tuple[Booking, ...] = ()
        scores = self._gpu_scores(spec, row, profile) if profile.gpu_scores else None
        for plugin in profile.reserves:
            part = plugin.reserve(spec, row, self._accounts.cluster, scores)
            if part is None:
                return None
            bookings += part
        return bookings

    def _gpu_scores(self, spec: PodSpec, row: int, profile: Profile) -> Column | None:
        """Return what plugins score the row's GPUs, below 0 where one of them refuses."""
        total: Column | None = None
        for plugin in profile.gpu_scores:
            scores = plugin.gpus(spec, self._accounts.cluster)
            if scores is None:
                continue
            own = scores(slice(row, row + 1))[:, 0]
            weighted = np.where(own < 0, -np.inf, own * profile.weights.get(plugin.name, 1))
            total = weighted if total is None else total + weighted
        return total
