"""The custom resources that Alnair uses: their CRDs are generated from these definitions."""

from typing import Final

from alnair.kube.crds import quota_rules
from alnair.kube.crds.elastic_crds import TRAINING_JOBS
from alnair.kube.crds.manifests import AGE, Column, CrdDefinition
from alnair.model import api_types

#: Groups below k8s.io need an approval; these are those of the projects that own the kinds.
_APPROVED = "api-approved.kubernetes.io"
_SCHEDULER_PLUGINS = "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"
_TOPOLOGY_API = "https://github.com/kubernetes/enhancements/pull/1870"

_POD_GROUP_COLUMNS = (
    Column("Phase", ".status.phase"),
    Column("MinMember", ".spec.minMember", "integer"),
    Column("Running", ".status.running", "integer"),
    Column("Succeeded", ".status.succeeded", "integer"),
    Column("Failed", ".status.failed", "integer"),
    AGE,
)


def _pod_group(group: str) -> CrdDefinition:
    return CrdDefinition(
        group=group,
        version="v1alpha1",
        kind="PodGroup",
        plural="podgroups",
        spec=api_types.PodGroupSpec,
        status=api_types.PodGroupStatus,
        short_names=("pg", "pgs"),
        columns=_POD_GROUP_COLUMNS,
        annotations={_APPROVED: _SCHEDULER_PLUGINS},
        description="Pods that are placed together or not at all.",
    )


POD_GROUP: Final = _pod_group("scheduling.x-k8s.io")
LEGACY_POD_GROUP: Final = _pod_group("scheduling.sigs.k8s.io")

ELASTIC_QUOTA: Final = CrdDefinition(
    group="scheduling.x-k8s.io",
    version="v1alpha1",
    kind="ElasticQuota",
    plural="elasticquotas",
    spec=api_types.ElasticQuotaSpec,
    status=api_types.ElasticQuotaStatus,
    short_names=("eq", "eqs"),
    columns=(
        Column("Used", ".status.used"),
        Column("Min", ".spec.min"),
        Column("Max", ".spec.max"),
        AGE,
    ),
    spec_rules=quota_rules.rules(),
    annotations={_APPROVED: _SCHEDULER_PLUGINS},
    description="A namespace's guaranteed and greatest share of the cluster.",
)

NODE_RESOURCE_TOPOLOGY: Final = CrdDefinition(
    group="topology.node.k8s.io",
    version="v1alpha2",
    kind="NodeResourceTopology",
    plural="noderesourcetopologies",
    namespaced=False,
    fields={
        "topologyPolicies": list[str] | None,
        "zones": list[api_types.Zone],
        "attributes": list[api_types.NamedValue] | None,
    },
    short_names=("node-res-topo",),
    annotations={_APPROVED: _TOPOLOGY_API},
    description="The resources of a node by topology zone, such as NUMA node.",
)

DEFINITIONS: Final = (
    POD_GROUP,
    LEGACY_POD_GROUP,
    ELASTIC_QUOTA,
    NODE_RESOURCE_TOPOLOGY,
    *TRAINING_JOBS,
)
