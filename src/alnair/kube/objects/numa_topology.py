"""From NodeResourceTopology objects to the noun `NumaTopology`.

Semantics: `pkg/noderesourcetopology` of scheduler-plugins. The deprecated `topologyPolicies` hold
where `attributes` say nothing, and what cannot be understood of either counts as absent.
"""

import re
from collections.abc import Mapping
from typing import Final

from alnair.kube.objects.amounts import base_units
from alnair.kube.objects.numa_topology_wire import NodeResourceTopologyWire, ReportMeta, ZoneWire
from alnair.kube.timestamps import timestamp
from alnair.model import quantity
from alnair.model.numa_topology import SINGLE_NUMA, NumaTopology, NumaZone

_POLICIES: Final = ("none", "best-effort", "restricted", SINGLE_NUMA)
_SCOPES: Final = ("container", "pod")
#: Deprecated policy → policy and scope.
_DEPRECATED: Final = {
    f"{name}{scope.capitalize()}Level": (policy, scope)
    for name, policy in (
        ("SingleNUMANode", SINGLE_NUMA),
        ("BestEffort", "best-effort"),
        ("Restricted", "restricted"),
    )
    for scope in _SCOPES
}
_MOST_ZONES: Final = 1024
_FINGERPRINT: Final = "topology.node.k8s.io/fingerprint"
#: Zones with a higher id are not believed.
_HIGHEST_ID: Final = 63
_ZONE_NAME: Final = re.compile(r"node-([0-9]+)")


def project_topology(report: NodeResourceTopologyWire) -> NumaTopology:
    """Return the report as scheduling sees it; what cannot be read becomes its `problem`."""
    policies = report.topology_policies or [""]
    policy, scope = _DEPRECATED.get(policies[0], ("none", "container"))
    most = 8
    fingerprint = (report.metadata.annotations or {}).get(_FINGERPRINT, "")
    exclusive_only = False
    for attribute in report.attributes or ():
        name, text = attribute.name, attribute.value
        if name == "topologyManagerPolicy" and text in _POLICIES:
            policy = text
        elif name == "topologyManagerScope" and text in _SCOPES:
            scope = text
        elif name == "topologyManagerMaxNUMANodes" and text.isascii() and text.isdigit():
            most = min(int(text), _MOST_ZONES) if int(text) > 1 else most
        elif name == "nodeTopologyPodsFingerprint":
            fingerprint = text
        elif name == "nodeTopologyPodsFingerprintMethod":
            exclusive_only = text == "with-exclusive-resources"
    zones: dict[int, NumaZone] = {}
    problem = ""
    for zone in report.zones or ():
        number = _id(zone.name)
        if zone.type != "Node" or number is None:
            continue
        try:
            zones[number] = NumaZone(number, _available(zone), _costs(zone))
        except quantity.QuantityError as error:
            problem = f"zone {zone.name}: {error}"
    return NumaTopology(
        zones=tuple(zones[number] for number in sorted(zones)),
        policy=policy,
        pod_scope=scope == "pod",
        max_zones=most,
        reported=_written(report.metadata),
        fingerprint=fingerprint,
        exclusive_only=exclusive_only,
        problem=problem,
    )


def _available(zone: ZoneWire) -> tuple[tuple[str, int], ...]:
    amounts: Mapping[str, int] = base_units({r.name: r.available for r in zone.resources or ()})
    return tuple(sorted((name, max(amount, 0)) for name, amount in amounts.items()))


def _costs(zone: ZoneWire) -> tuple[tuple[int, int], ...]:
    found = {_id(cost.name): cost.value for cost in zone.costs or ()}
    return tuple(sorted((number, cost) for number, cost in found.items() if number is not None))


def _id(name: str) -> int | None:
    match = _ZONE_NAME.fullmatch(name)
    number = int(match[1]) if match and len(match[1]) < 4 else _HIGHEST_ID + 1
    return number if number <= _HIGHEST_ID else None


def _written(meta: ReportMeta) -> float:
    times = [timestamp(field.time or "") for field in meta.managed_fields or ()]
    return max([*times, timestamp(meta.creation_timestamp)])
