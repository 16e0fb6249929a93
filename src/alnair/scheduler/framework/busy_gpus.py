"""GPUs that are measured to be too busy for another tenant."""

from collections.abc import Iterable

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.extension_points import Depends, Reason
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.gpus.gpu_room import any_gpu, slice_fits
from alnair.scheduler.state.nodes.columns import Mask, Rows


class NotBusy:
    """Filters nodes without a GPU that has room for the slice and is not too busy for it.

    Args:
        spec: of a pod with a slice.
        cluster: its state.
        limit: percent of time.
    """

    depends = Depends.BOOKED

    def __init__(self, spec: PodSpec, cluster: Cluster, limit: float) -> None:
        self._spec = spec
        self._cluster = cluster
        self._limit = limit
        self._reason = Reason(
            f"node(s) have no GPU to share below {limit:g} % measured and expected utilization"
        )

    def __call__(self, rows: Rows) -> Mask:
        """Return which rows pass."""
        assert self._spec.gpu is not None
        fits = slice_fits(self._spec.gpu, self._cluster.devices, rows)
        return any_gpu(fits & ~too_busy(self._spec, self._cluster, rows, self._limit))

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        """Yield why rows are refused."""
        yield self._reason, ~self(rows)


def too_busy(spec: PodSpec, cluster: Cluster, rows: Rows, limit: float) -> Mask:
    """Return which GPUs have tenants, and would be busy beyond the limit with this pod too."""
    util = cluster.loads.expected_util(rows)
    shared = cluster.devices.shared_mask(rows)
    busy: Mask = shared & (util >= 0) & (util + spec.expected_util > limit)
    return busy
