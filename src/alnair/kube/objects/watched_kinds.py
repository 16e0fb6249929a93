"""The kinds of objects that plugins read beside nodes, pods and PodGroups.

Each is a resource with its narrow type, and its projector.
"""

from collections.abc import Callable
from typing import Any, Final, get_type_hints

from alnair.kube import resources
from alnair.kube.objects import controller_selectors, storage, wire
from alnair.kube.objects.namespaced_limits import project_budget, project_namespace, project_quota
from alnair.kube.objects.numa_topology import project_topology
from alnair.kube.objects.numa_topology_wire import NodeResourceTopologyWire
from alnair.kube.resources import Resource

Kinds = tuple[tuple[Resource[Any], Callable[[Any], Any]], ...]

STORAGE: Final[Kinds] = (
    (resources.CLAIMS.typed(storage.ClaimWire), storage.project_claim),
    (
        resources.PERSISTENT_VOLUMES.typed(storage.PersistentVolumeWire),
        storage.project_volume,
    ),
    (resources.STORAGE_CLASSES.typed(storage.StorageClassWire), storage.project_class),
    (resources.CSI_NODES.typed(storage.CsiNodeWire), storage.project_csi_node),
    (resources.CSI_DRIVERS.typed(storage.DriverWire), storage.project_driver),
    (resources.CSI_CAPACITIES.typed(storage.CapacityWire), storage.project_capacity),
    (resources.VOLUME_ATTACHMENTS.typed(storage.AttachmentWire), storage.project_attachment),
)
OBJECTS: Final[Kinds] = (
    (resources.NAMESPACES.typed(wire.NamespaceWire), project_namespace),
    (resources.NODE_RESOURCE_TOPOLOGIES.typed(NodeResourceTopologyWire), project_topology),
    (resources.DISRUPTION_BUDGETS.typed(wire.BudgetWire), project_budget),
    (resources.ELASTIC_QUOTAS.typed(wire.ElasticQuotaWire), project_quota),
    *STORAGE,
)
#: The kinds that say which pods belong together: default spread constraints read them. Large
#: clusters have many of these, so they are followed only where a profile reads them.
PEERS: Final[Kinds] = (
    (
        resources.SERVICES.typed(controller_selectors.MapSelecting),
        controller_selectors.project_map_selecting,
    ),
    (
        resources.REPLICATION_CONTROLLERS.typed(controller_selectors.MapSelecting),
        controller_selectors.project_map_selecting,
    ),
    (
        resources.REPLICA_SETS.typed(controller_selectors.Selecting),
        controller_selectors.project_selecting,
    ),
    (
        resources.STATEFUL_SETS.typed(controller_selectors.Selecting),
        controller_selectors.project_selecting,
    ),
)


def object_types() -> dict[str, Any]:
    """Return the kinds of objects that an engine is told of, and the types of their values."""
    return {resource.kind: get_type_hints(project)["return"] for resource, project in OBJECTS}
