"""The scheduler profiles: which plugins, with which weights, under which scheduler name."""

from collections.abc import Callable, Mapping

from alnair.model import names
from alnair.scheduler.framework.arguments import made
from alnair.scheduler.framework.contract import Plugin, Profile
from alnair.scheduler.plugins.default_preemption import DefaultPreemption
from alnair.scheduler.plugins.gpu_models import GpuModels
from alnair.scheduler.plugins.gpu_share.plugin import GpuShare
from alnair.scheduler.plugins.gpu_topology import GpuTopology
from alnair.scheduler.plugins.image_locality import ImageLocality
from alnair.scheduler.plugins.inter_pod_affinity.plugin import InterPodAffinity
from alnair.scheduler.plugins.interference import Interference
from alnair.scheduler.plugins.node_affinity import NodeAffinity
from alnair.scheduler.plugins.node_name import NodeName
from alnair.scheduler.plugins.node_ports import NodePorts
from alnair.scheduler.plugins.node_resource_topology_match.plugin import NodeResourceTopologyMatch
from alnair.scheduler.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from alnair.scheduler.plugins.node_resources_fit.plugin import NodeResourcesFit
from alnair.scheduler.plugins.node_unschedulable import NodeUnschedulable
from alnair.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from alnair.scheduler.plugins.opportunity_cost.plugin import OpportunityCost
from alnair.scheduler.plugins.pod_topology_spread.plugin import PodTopologySpread
from alnair.scheduler.plugins.priority_sort import PrioritySort
from alnair.scheduler.plugins.scheduling_gates import SchedulingGates
from alnair.scheduler.plugins.taint_toleration import TaintToleration
from alnair.scheduler.plugins.util_sched import UtilSched
from alnair.scheduler.plugins.volume_binding.plugin import VolumeBinding
from alnair.scheduler.plugins.volume_restrictions import VolumeRestrictions
from alnair.scheduler.plugins.volume_zone import VolumeZone

#: Plugin name → factory from its arguments.
Registry = Mapping[str, Callable[..., Plugin]]

#: Weights of score plugins, those of kube-scheduler where both have the plugin.
WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "PodTopologySpread": 2,
    "NodeResourceTopologyMatch": 1,
    "InterPodAffinity": 2,
    "GpuTopology": 2,
    "GpuModels": 4,
    "OpportunityCost": 1,
    "UtilSched": 5,
    "Interference": 2,
}


def registry() -> dict[str, Callable[..., Plugin]]:
    """Return the plugins that ship with Alnair."""
    return {
        plugin.name: plugin
        for plugin in (
            PrioritySort,
            SchedulingGates,
            NodeUnschedulable,
            NodeName,
            TaintToleration,
            NodeAffinity,
            NodePorts,
            NodeResourcesFit,
            NodeResourcesBalancedAllocation,
            ImageLocality,
            GpuShare,
            GpuTopology,
            GpuModels,
            OpportunityCost,
            UtilSched,
            Interference,
            NodeResourceTopologyMatch,
            VolumeRestrictions,
            NodeVolumeLimits,
            VolumeBinding,
            VolumeZone,
            PodTopologySpread,
            InterPodAffinity,
            DefaultPreemption,
        )
    }


_LEAST = {"type": "LeastAllocated"}
_MOST = {"type": "MostAllocated"}
_ALL = {
    # Spreading that nobody asked for would scatter pods over nodes with GPUs.
    "PodTopologySpread": {"defaultingType": "List"},
}
_IN_ORDER: Mapping[str, Mapping[str, object]] = {
    **_ALL,
    "NodeResourcesFit": {"scoringStrategy": _LEAST, "gpuNodesInOrder": True},
    "GpuShare": {"choice": "tightest"},
    "ImageLocality": {"gpuNodesInOrder": True},
}
#: Scheduler name → plugin → its arguments, where they are not the defaults: balanced, cost saving
#: (pack), high performance (spread), low fragmentation (as balanced, and by what a placement takes
#: from pods to come), by measured load.
ARGUMENTS: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    names.SCHEDULER: _IN_ORDER,
    names.COST_SAVING: {
        **_ALL,
        "NodeResourcesFit": {"scoringStrategy": _MOST},
        "GpuShare": {"choice": "tightest"},
    },
    names.HIGH_PERFORMANCE: {
        **_ALL,
        "NodeResourcesFit": {"scoringStrategy": _LEAST},
        "GpuShare": {"choice": "emptiest"},
    },
    names.LOW_FRAGMENTATION: _IN_ORDER,
    names.UTILSCHED: {
        **_ALL,
        "NodeResourcesFit": {"scoringStrategy": _LEAST},
        "GpuShare": {"choice": "tightest"},
    },
}
_BY_LOAD = frozenset({"UtilSched", "Interference"})
_BY_COST = frozenset({"OpportunityCost"})
#: Scheduler name → plugins that it is without, since their scores would fight its purpose: evenness
#: would draw pods away from the GPU node that is being filled, and with images from the fullest.
OMITTED: Mapping[str, frozenset[str]] = {
    names.SCHEDULER: frozenset({"NodeResourcesBalancedAllocation"}) | _BY_LOAD | _BY_COST,
    names.COST_SAVING: frozenset({"NodeResourcesBalancedAllocation", "ImageLocality"})
    | _BY_LOAD
    | _BY_COST,
    names.HIGH_PERFORMANCE: _BY_LOAD | _BY_COST,
    names.LOW_FRAGMENTATION: frozenset({"NodeResourcesBalancedAllocation"}) | _BY_LOAD,
    names.UTILSCHED: _BY_COST,
}


def profiles(plugins: Registry | None = None) -> tuple[Profile, ...]:
    """Return the built-in profiles."""
    make = plugins if plugins is not None else registry()
    return tuple(
        Profile(
            scheduler=scheduler,
            # The cheapest and most telling refusals come first: a node counts for the first one.
            plugins=tuple(
                made(make[name], arguments.get(name, {}), name)
                for name in make
                if name not in OMITTED[scheduler]
            ),
            weights=WEIGHTS,
        )
        for scheduler, arguments in ARGUMENTS.items()
    )
