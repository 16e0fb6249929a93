"""The scheduler profiles: which plugins, with which weights, under which scheduler name."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from alnair.model import names
from alnair.scheduler.framework.arguments import made
from alnair.scheduler.framework.extension_points import Plugin, Profile
from alnair.scheduler.plugins.default_preemption import DefaultPreemption
from alnair.scheduler.plugins.gpu_allocation.plugin import GpuAllocation
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

#: The plugin that sorts the queue unless a profile says otherwise.
QUEUE_SORT: Final = PrioritySort.name
#: Weights of score plugins, those of kube-scheduler where both have the plugin.
WEIGHTS: Final[Mapping[str, int]] = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "PodTopologySpread": 2,
    "NodeResourceTopologyMatch": 1,
    "InterPodAffinity": 2,
    "GpuAllocation": 1,
    "GpuTopology": 2,
    "GpuModels": 4,
    "OpportunityCost": 1,
    "UtilSched": 5,
    "Interference": 2,
}


def registry() -> dict[str, Callable[..., Plugin]]:
    """Return the factories of the plugins that ship with Alnair, by name; all are to be had."""
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
            GpuAllocation,
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


class Use(msgspec.Struct, frozen=True):
    """A plugin of a profile; the weight is that of its score, if it has one."""

    plugin: str
    weight: int = 1
    arguments: Mapping[str, object] = {}


def _use(plugin: str, **arguments: object) -> Use:
    return Use(plugin, WEIGHTS.get(plugin, 1), arguments)


_LEAST: Final = {"type": "LeastAllocated"}
_MOST: Final = {"type": "MostAllocated"}
#: The cheapest and most telling refusals come first: a node counts for the first one.
_FIRST: Final = (
    _use("PrioritySort"),
    _use("SchedulingGates"),
    _use("NodeUnschedulable"),
    _use("NodeName"),
    _use("TaintToleration"),
    _use("NodeAffinity"),
    _use("NodePorts"),
)
_GPU_NODES: Final = (_use("GpuTopology"), _use("GpuModels"))
_LAST: Final = (
    _use("NodeResourceTopologyMatch"),
    _use("VolumeRestrictions"),
    _use("NodeVolumeLimits"),
    _use("VolumeBinding"),
    _use("VolumeZone"),
    # Spreading that nobody asked for would scatter pods over nodes with GPUs.
    _use("PodTopologySpread", defaultingType="List"),
    _use("InterPodAffinity"),
    _use("DefaultPreemption"),
)
#: Evenness would draw pods away from the GPU node that is being filled: no balanced allocation.
_IN_ORDER: Final = (
    *_FIRST,
    _use("NodeResourcesFit", scoringStrategy=_LEAST, gpuNodesInOrder=True),
    _use("ImageLocality", gpuNodesInOrder=True),
    _use("GpuShare", choice="tightest"),
    # A node is opened for NVLinks, but not for one way over PCIe or another.
    _use("GpuAllocation", type="MostAllocated", tieBreakers=["NodeResourceTopologyMatch"]),
    _use("GpuTopology", nvlinkOnly=True),
    _use("GpuModels"),
)
#: By what a placement takes from pods to come, and in order until some have come.
_OPPORTUNITY_COST: Final = _use("OpportunityCost", untilLearned=["GpuAllocation"])
#: Pods with GPUs go by them, and only then by what the node has besides.
_LEAST_GPUS: Final = _use(
    "GpuAllocation",
    type="LeastAllocated",
    tieBreakers=["NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality"],
)
#: Scheduler name → its plugins in their order. Another plugin of the registry is in none of them
#: until it is listed here.
PROFILES: Final[Mapping[str, tuple[Use, ...]]] = {
    # Not by measured loads: slices have their shares by force.
    names.SCHEDULER: (
        *_IN_ORDER,
        _use("OpportunityCost", **_OPPORTUNITY_COST.arguments, targetUtilization=100),
        *_LAST,
    ),
    # Nodes are filled, so neither evenness nor images count.
    names.COST_SAVING: (
        *_FIRST,
        _use("NodeResourcesFit", scoringStrategy=_MOST),
        _use("GpuShare", choice="tightest"),
        # Links are worth less here than a node that stays free.
        _use(
            "GpuAllocation",
            type="MostAllocated",
            smallestFirst=True,
            tieBreakers=["NodeResourcesFit", "GpuTopology", "NodeResourceTopologyMatch"],
        ),
        *_GPU_NODES,
        *_LAST,
    ),
    # Pods are spread.
    names.HIGH_PERFORMANCE: (
        *_FIRST,
        _use("NodeResourcesFit", scoringStrategy=_LEAST),
        _use("NodeResourcesBalancedAllocation"),
        _use("ImageLocality"),
        _use("GpuShare", choice="emptiest"),
        _LEAST_GPUS,
        *_GPU_NODES,
        *_LAST,
    ),
    # The same, and slices keep off GPUs that are measured to be busy.
    names.LOW_FRAGMENTATION: (*_IN_ORDER, _OPPORTUNITY_COST, *_LAST),
    # What the default was before.
    names.IN_ORDER: (*_IN_ORDER, *_LAST),
    # By measured load.
    names.UTILSCHED: (
        *_FIRST,
        _use("NodeResourcesFit", scoringStrategy=_LEAST),
        _use("NodeResourcesBalancedAllocation"),
        _use("ImageLocality"),
        _use("GpuShare", choice="tightest"),
        _LEAST_GPUS,
        *_GPU_NODES,
        _use("UtilSched"),
        _use("Interference"),
        *_LAST,
    ),
}


def profiles() -> tuple[Profile, ...]:
    """Return the built-in profiles, made anew: an engine takes them for its own."""
    make = registry()
    return tuple(
        Profile(
            scheduler,
            [made(make[use.plugin], use.arguments, use.plugin) for use in uses],
            {use.plugin: use.weight for use in uses},
        )
        for scheduler, uses in PROFILES.items()
    )
