"""What of NUMA zones is taken by pods that the last report cannot count yet.

Exporters report some seconds after a kubelet started a pod. Until then the pod is taken from the
zone that the kubelet will choose.
"""

import math
from collections.abc import Mapping
from typing import Final, Protocol

from alnair.model.numa_topology import NumaTopology
from alnair.model.pods_fingerprint import pods_fingerprint
from alnair.model.workload import Pod
from alnair.scheduler.state.nodes.columns import Columns
from alnair.scheduler.state.numa.numa_alignment import Alignment, is_native
from alnair.scheduler.state.numa.numa_zones import Take, Zones
from alnair.scheduler.state.objects.api_objects import Key, Objects

#: A report whose fingerprint is not that of the pods we know lacks some of them, or has others that
#: went. It is taken to count those that came so many seconds before it.
GRACE_SECONDS: Final = 30.0
_KIND: Final = "NodeResourceTopology"


class ZonePlacement(Protocol):
    """A pod on a node, when it came there, and whether we put it there just now."""

    pod: Pod
    placed_at: float
    decided: bool


class ZoneBookings:
    """Keeps the zones true: reports come and go, and so do pods.

    Args:
        zones: what is kept.
        columns: the nodes.
        objects: the reports.
        on_row: the pods on each row by uid.
    """

    def __init__(
        self,
        zones: Zones,
        columns: Columns,
        objects: Objects,
        on_row: Mapping[int, Mapping[str, ZonePlacement]],
    ) -> None:
        self._zones = zones
        self._columns = columns
        self._objects = objects
        self._on_row = on_row
        self._reports: dict[int, NumaTopology | None] = {}
        #: Of each row, the pods that a report counted for sure: a later one does so too.
        self._counted: dict[int, set[str]] = {}
        #: Of each row, what its pods took: a zone once chosen stays chosen.
        self._chosen: dict[int, dict[str, tuple[Take, ...]]] = {}
        #: Rows whose zones have just what we know, and not more.
        self._exact: set[int] = set()
        objects.follow(_KIND, self._report_changed)

    def describe(self, row: int, node: str) -> None:
        """Set the zones of a row as the node's report says, if there is one."""
        report: NumaTopology | None = self._objects.of(_KIND).get(("", node))
        if report and not self._zones.any:
            self._columns.schema += 1  # what was compiled knows of no zones
        here = self._on_row.get(row, {})
        before = self._reports.get(row)
        if report is None or _zone_ids(report) != _zone_ids(before):
            self._chosen.pop(row, None)
            self._counted.pop(row, None)
        self._chosen.setdefault(row, {})
        self._reports[row] = report
        self._zones.describe(row, report)
        self._exact.add(row)
        if report and not self._counts_all(row, report):
            for placed in here.values():
                self.came(row, placed)
            # Perhaps it counts them after all, or pods that left before we knew the node.
            if self._zones.any_taken(row) or before is None:
                self._exact.discard(row)

    def vacate(self, row: int) -> None:
        """Forget a row whose node is gone."""
        self._reports.pop(row, None)
        self._chosen.pop(row, None)
        self._counted.pop(row, None)
        self._zones.describe(row, None)

    def came(self, row: int, placed: ZonePlacement) -> None:
        """Take what a pod holds, unless the report counts it."""
        report, uid = self._reports.get(row), placed.pod.uid
        if report is None or not self._zones.aligned[row] or _counts(report, placed.placed_at):
            return
        if uid in self._counted.get(row, ()):
            return
        takes = self._chosen[row].get(uid)
        if takes is None:
            alignment = Alignment(placed.pod.spec, self._zones, self._columns)
            if alignment.trivial:
                return
            if placed.decided:
                takes = alignment.takes(row, exact=row in self._exact)
            else:
                takes = alignment.takes_everywhere(row)
                self._exact.discard(row)
            self._chosen[row][uid] = takes
        self._zones.take(row, uid, takes)

    def left(self, row: int, placed: ZonePlacement) -> None:
        """Give back what a pod held; the pods that are left may be those that the report counts."""
        report = self._reports.get(row)
        if report is None:
            return
        if not self._zones.release(row, placed.pod.uid) and self._is_exclusive(placed.pod):
            self._exact.discard(row)  # its zone has more now than the report says
        self._counted.get(row, set()).discard(placed.pod.uid)
        if self._zones.any_taken(row) and self._counts_all(row, report):
            self._zones.release_all(row)

    def forget(self, row: int, uid: str) -> None:
        """Forget the zones of a pod that is not on the row any more, nor will be back."""
        if row in self._chosen:
            self._chosen[row].pop(uid, None)

    def _report_changed(self, key: Key) -> bool:
        row = self._columns.row_of.get(key[1])  # reports are named after their nodes
        if row is None:
            return False
        before = self._zones.room(row)
        self.describe(row, key[1])
        self._columns.nodes_changed.add(row)
        # After each binding comes a report that says what we know: it helps nobody.
        return not self._zones.room(row) <= before

    def _counts_all(self, row: int, report: NumaTopology) -> bool:
        """Return whether the report's fingerprint is that of the pods on the row."""
        if not report.fingerprint:
            return False
        pods = [placed.pod for placed in self._on_row.get(row, {}).values()]
        if report.exclusive_only:
            pods = [pod for pod in pods if self._is_exclusive(pod)]
        if report.fingerprint != pods_fingerprint((p.namespace, p.name) for p in pods):
            return False
        self._counted[row] = {pod.uid for pod in pods}
        return True

    def _is_exclusive(self, pod: Pod) -> bool:
        """Return whether the pod gets memory of its own, or devices that lie in zones."""
        return pod.spec.guaranteed or any(
            not is_native(name) and name in self._zones.resources for name, _ in pod.spec.requests
        )


def _zone_ids(report: NumaTopology | None) -> list[int]:
    return [zone.id for zone in report.zones] if report else []


def _counts(report: NumaTopology, came: float) -> bool:
    """Return whether a report counts a pod that came at that time, as far as times tell.

    Reports are dated by the second, so one of the same second may be older than the pod. One
    without a date is believed.
    """
    if not report.reported:
        return True
    grace = GRACE_SECONDS if report.fingerprint else 0.0
    return report.reported >= math.floor(came) + 1 + grace
