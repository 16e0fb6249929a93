"""A case's cluster, built from its objects with the same projection that the scheduler uses."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec
import numpy as np

from alnair.kube.objects import storage, wire
from alnair.kube.objects.controller_selectors import (
    MapSelecting,
    Selecting,
    project_map_selecting,
    project_selecting,
)
from alnair.kube.objects.namespaced_limits import project_budget, project_namespace
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.numa_topology import project_topology
from alnair.kube.objects.numa_topology_wire import NodeResourceTopologyWire
from alnair.kube.objects.pod_projection import PodProjector
from alnair.model.workload import Pod, PodSpec
from alnair.scheduler.state.accounts import Accounts, Record, State
from alnair.scheduler.state.disruption_budgets import KIND as BUDGETS
from alnair.scheduler.state.nodes.columns import Mask
from conformance.document import Case, Object

T = TypeVar("T")


def of_kind(
    kind: str, form: type[T], project: Callable[[T], Any]
) -> Callable[[Accounts, list[Object]], None]:
    """Return what puts objects of a kind into the books; what projects to None is left out."""

    def put(accounts: Accounts, objects: list[Object]) -> None:
        for raw in objects:
            value = project(msgspec.convert(raw, form))
            if value is not None:
                meta = raw["metadata"]
                accounts.objects.put(kind, (meta.get("namespace", ""), meta["name"]), value)

    return put


#: Key of `extra` → puts such objects into the books. One line per kind that plugins read.
OBJECTS: Final[Mapping[str, Callable[[Accounts, list[Object]], None]]] = {
    "namespaces": of_kind("Namespace", wire.NamespaceWire, project_namespace),
    "nodeResourceTopologies": of_kind(
        "NodeResourceTopology", NodeResourceTopologyWire, project_topology
    ),
    "podDisruptionBudgets": of_kind(BUDGETS, wire.BudgetWire, project_budget),
    "replicaSets": of_kind("ReplicaSet", Selecting, project_selecting),
    "replicationControllers": of_kind("ReplicationController", MapSelecting, project_map_selecting),
    "services": of_kind("Service", MapSelecting, project_map_selecting),
    "statefulSets": of_kind("StatefulSet", Selecting, project_selecting),
    "csiDrivers": of_kind("CSIDriver", storage.DriverWire, storage.project_driver),
    "csiStorageCapacities": of_kind(
        "CSIStorageCapacity", storage.CapacityWire, storage.project_capacity
    ),
    "csiNodes": of_kind("CSINode", storage.CsiNodeWire, storage.project_csi_node),
    "persistentVolumeClaims": of_kind(
        "PersistentVolumeClaim", storage.ClaimWire, storage.project_claim
    ),
    "persistentVolumes": of_kind(
        "PersistentVolume", storage.PersistentVolumeWire, storage.project_volume
    ),
    "storageClasses": of_kind("StorageClass", storage.StorageClassWire, storage.project_class),
    "volumeAttachments": of_kind(
        "VolumeAttachment", storage.AttachmentWire, storage.project_attachment
    ),
}


class Bench:
    """The nodes, pods and further objects of a case, in books of their own."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.accounts = Accounts()
        self._project = PodProjector()
        for key, put in OBJECTS.items():
            put(self.accounts, case.extra.get(key) or [])
        for node in case.nodes:
            projected = project_node(msgspec.convert(node, wire.NodeWire))
            if projected.problem:
                raise ValueError(f"node {projected.name}: {projected.problem}")
            self.accounts.put_node(projected)
        #: The bound pods in the order of the case.
        self.existing = [
            self._place(self.pod(pod, f"existing-{number}"))
            for number, pod in enumerate(case.existing_pods)
        ]

    @property
    def rows(self) -> Mapping[str, int]:
        """Row by name of node."""
        return self.accounts.columns.row_of

    def pod(self, raw: Object, uid: str) -> Pod:
        """Return the pod as scheduling sees it, under a uid of our own."""
        pod = self._project(msgspec.convert(raw, wire.PodWire))
        if pod.problem:
            raise ValueError(f"pod {pod.name}: {pod.problem}")
        return msgspec.structs.replace(pod, uid=uid)

    @property
    def incoming(self) -> Pod:
        """The pod that the case is about."""
        if self.case.pod is None:
            raise ValueError("the case has no pod")
        return self.pod(self.case.pod, "incoming")

    @property
    def spec(self) -> PodSpec:
        """The incoming pod's class, as plugins get it."""
        pod = self.incoming
        return msgspec.structs.replace(
            pod.spec,
            # A pod that names its node is bound for us; the plugin can be asked all the same.
            node_name=pod.node,
            # Every label counts here, as if selectors mentioned all of them.
            namespace=pod.namespace,
            labels=pod.labels,
            controller=pod.controller,
        )

    def candidates(self) -> Mask:
        """Return which rows scoring may choose from."""
        mask = self.accounts.columns.alive[: self.accounts.columns.n].copy()
        for node in self.case.extra.get("filtered_out_nodes", ()):
            mask[self.rows[node]] = False
        return mask

    def everywhere(self) -> "np.ndarray[Any, Any]":
        """Return all rows as an array of indices."""
        return np.arange(self.accounts.columns.n)

    def _place(self, pod: Pod) -> Record:
        record = Record(pod)
        if pod.node:
            self.accounts.place(record, pod.node, State.BOUND, 0.0)
        return record
