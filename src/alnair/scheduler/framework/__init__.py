"""The plugin contract, with the names of kube-scheduler, and what runs plugins.

Filters and scores of one pod class over all nodes are computed, cached and guarded here. It names
no plugin, and knows neither queue nor engine.

Who writes plugins imports from this package; the rest of Alnair imports from its modules.
"""

from alnair.scheduler.framework.arguments import Arguments, out_of_range
from alnair.scheduler.framework.extension_points import (
    ClaimPlugin,
    Depends,
    Filter,
    FilterPlugin,
    GpuReasonPlugin,
    GpuScorePlugin,
    NamedObjectsPlugin,
    Normalize,
    ObjectsPlugin,
    Observer,
    ObserverPlugin,
    Plugin,
    PodsFilter,
    PodsScore,
    PostFilterPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    QuickPlugin,
    Reason,
    Refusal,
    RelaxationPlugin,
    ReservePlugin,
    Score,
    ScorePlugin,
)
from alnair.scheduler.framework.normalize import fewer_is_better, more_is_better
from alnair.scheduler.framework.relaxation import Relaxation
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.gpus.devices import Booking
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows

__all__ = [
    "Arguments",
    "Booking",
    "ClaimPlugin",
    "Cluster",
    "Column",
    "Depends",
    "Filter",
    "FilterPlugin",
    "GpuReasonPlugin",
    "GpuScorePlugin",
    "Mask",
    "NamedObjectsPlugin",
    "Normalize",
    "ObjectsPlugin",
    "Observer",
    "ObserverPlugin",
    "Plugin",
    "PodsFilter",
    "PodsScore",
    "PostFilterPlugin",
    "PreEnqueuePlugin",
    "PreFilterPlugin",
    "PreScorePlugin",
    "QueueSortPlugin",
    "QuickPlugin",
    "Reason",
    "Refusal",
    "Relaxation",
    "RelaxationPlugin",
    "ReservePlugin",
    "Rows",
    "Score",
    "ScorePlugin",
    "fewer_is_better",
    "more_is_better",
    "out_of_range",
]
