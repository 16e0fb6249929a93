"""Which plugin answers for which name, made from the arguments and feature gates of a case."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from alnair.scheduler.framework.arguments import made
from alnair.scheduler.plugins.default_preemption import DefaultPreemption
from alnair.scheduler.plugins.image_locality import ImageLocality
from alnair.scheduler.plugins.inter_pod_affinity.plugin import InterPodAffinity
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
from alnair.scheduler.plugins.pod_topology_spread.plugin import PodTopologySpread
from alnair.scheduler.plugins.taint_toleration import TaintToleration
from alnair.scheduler.plugins.volume_binding.plugin import VolumeBinding
from alnair.scheduler.plugins.volume_restrictions import VolumeRestrictions
from alnair.scheduler.plugins.volume_zone import VolumeZone
from conformance.outcome import NotCoveredError

Gates = Mapping[str, bool]
#: Makes a plugin from arguments in v1 spelling and the gates that are not at their default.
Maker = Callable[[Mapping[str, Any], Gates], Any]

COMPARING: Final = "TaintTolerationComparisonOperators"


class Entry(msgspec.Struct, frozen=True):
    """A plugin as cases can ask for it."""

    make: Maker
    #: Gates that it can be told of; a case that needs others is reported apart.
    gates: frozenset[str] = frozenset()


def plain(factory: Callable[..., Any]) -> Entry:
    """Return an entry for a plugin that knows no gates."""
    return Entry(lambda args, gates: made(factory, args))


def _taints(args: Mapping[str, Any], gates: Gates) -> TaintToleration:
    made(TaintToleration, args)  # refuses arguments
    return TaintToleration(comparing=gates.get(COMPARING, False))


#: One line per plugin that Alnair has.
PLUGINS: Final[Mapping[str, Entry]] = {
    "InterPodAffinity": plain(InterPodAffinity),
    "ImageLocality": plain(ImageLocality),
    "DefaultPreemption": plain(DefaultPreemption),
    "NodeAffinity": plain(NodeAffinity),
    "NodeName": plain(NodeName),
    "NodeResourceTopologyMatch": plain(NodeResourceTopologyMatch),
    "NodePorts": plain(NodePorts),
    "NodeResourcesBalancedAllocation": plain(NodeResourcesBalancedAllocation),
    "NodeResourcesFit": plain(NodeResourcesFit),
    "NodeVolumeLimits": plain(NodeVolumeLimits),
    "NodeUnschedulable": plain(NodeUnschedulable),
    "PodTopologySpread": plain(PodTopologySpread),
    "TaintToleration": Entry(_taints, frozenset({COMPARING})),
    "VolumeBinding": plain(VolumeBinding),
    "VolumeRestrictions": plain(VolumeRestrictions),
    "VolumeZone": plain(VolumeZone),
}


def modelled(name: str) -> frozenset[str]:
    """Return the gates that the plugin knows."""
    entry = PLUGINS.get(name)
    return entry.gates if entry else frozenset()


def plugin(name: str, args: Mapping[str, Any], gates: Gates) -> Any:
    """Return the plugin.

    Raises:
        NotCoveredError: there is no such plugin here.
        ArgumentError: it refuses the arguments.
    """
    entry = PLUGINS.get(name)
    if entry is None:
        raise NotCoveredError(f"plugin {name}")
    return entry.make(args, gates)
