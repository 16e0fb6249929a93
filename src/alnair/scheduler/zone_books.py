"""What of NUMA zones is taken by pods that the last report cannot count yet.

Exporters report some seconds after a kubelet started a pod. Until then the pod is taken from the
zone that the kubelet will choose.
"""

import math
from collections.abc import Mapping
from typing import Final, Protocol

from alnair.model.fingerprint import pods_fingerprint
from alnair.model.topology import Topology
from alnair.model.workload import Pod
from alnair.scheduler.alignment import Alignment, is_native
from alnair.scheduler.columns import Columns
from alnair.scheduler.objects import Key, Objects
from alnair.scheduler.zones import Zones

#: A report whose fingerprint is not that of the pods we know lacks some of them, or has others that
#: went. It is taken to count those that came so many seconds before it.
GRACE_SECONDS: Final = 30.0
_KIND: Final = "NodeResourceTopology"


class Placed(Protocol):
    """A pod on a node, and when it came there."""

    pod: Pod
    placed_at: float


class ZoneBooks:
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
        on_row: Mapping[int, Mapping[str, Placed]],
    ) -> None:
        self._zones = zones
        self._columns = columns
        self._objects = objects
        self._on_row = on_row
        self._reports: dict[int, Topology | None] = {}
        #: Of each row, the pods that a report counted for sure: a later one does so too.
        self._counted: dict[int, set[str]] = {}
        objects.follow(_KIND, self._report_changed)

    def describe(self, row: int, node: str) -> None:
        """Set the zones of a row as the node's report says, if there is one."""
        report: Topology | None = self._objects.of(_KIND).get(("", node))
        if report and not self._zones.any:
            self._columns.schema += 1  # what was compiled knows of no zones
        self._reports[row] = report
        self._zones.describe(row, report)
        if report is None:
            self._counted.pop(row, None)
        elif not self._counts_all(row, report):
            for placed in self._on_row.get(row, {}).values():
                self.came(row, placed)

    def came(self, row: int, placed: Placed) -> None:
        """Take what a pod holds, unless the report counts it."""
        report = self._reports.get(row)
        if report is None or not self._zones.aligned[row] or _counts(report, placed.placed_at):
            return
        if placed.pod.uid in self._counted.get(row, ()):
            return
        alignment = Alignment(placed.pod.spec, self._zones, self._columns)
        if not alignment.trivial:
            self._zones.take(row, placed.pod.uid, alignment.takes(row))

    def left(self, row: int, placed: Placed) -> None:
        """Give back what a pod held; the pods that are left may be those that the report counts."""
        self._zones.release(row, placed.pod.uid)
        self._counted.get(row, set()).discard(placed.pod.uid)
        report = self._reports.get(row)
        if report and self._zones.any_taken(row) and self._counts_all(row, report):
            self._zones.release_all(row)

    def _report_changed(self, key: Key) -> None:
        row = self._columns.row_of.get(key[1])  # reports are named after their nodes
        if row is not None:
            self.describe(row, key[1])
            self._columns.nodes_changed.add(row)

    def _counts_all(self, row: int, report: Topology) -> bool:
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


def _counts(report: Topology, came: float) -> bool:
    """Return whether a report counts a pod that came at that time, as far as times tell.

    Reports are dated by the second, so one of the same second may be older than the pod. One
    without a date is believed.
    """
    if not report.reported:
        return True
    grace = GRACE_SECONDS if report.fingerprint else 0.0
    return report.reported >= math.floor(came) + 1 + grace
