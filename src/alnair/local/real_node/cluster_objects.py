"""What a real node needs in the API server: rights of its programs, and the DNS Service."""

from typing import Any

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    NODES,
    SERVICES,
    Manifest,
    Resource,
    grouped,
)
from alnair.local.access.certificates import NODE_IDENTITIES
from alnair.local.real_node.settings import DNS_ADDRESS, NAME, NodeSettings
from alnair.model.names import FIELD_MANAGER

ENDPOINT_SLICES = grouped("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
_DNS = {"name": "kube-dns", "namespace": "kube-system"}
_PORTS = (("dns", "UDP"), ("dns-tcp", "TCP"))
_RBAC = "rbac.authorization.k8s.io"


def objects(node: NodeSettings) -> list[tuple[Resource[Manifest], Manifest]]:
    """All objects, in the order of applying."""
    read = ["get", "list", "watch"]
    rules = [
        {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": read},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": read},
    ]
    role: Manifest = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "alnair-coredns"},
        "rules": rules,
    }
    service: Manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        # The labels by which other tools know a cluster's DNS.
        "metadata": {**_DNS, "labels": {"k8s-app": "kube-dns"}},
        # Without selector: DNS is a process of the node and no pod.
        "spec": {
            "clusterIP": DNS_ADDRESS,
            "ports": [
                {"name": name, "protocol": protocol, "port": 53} for name, protocol in _PORTS
            ],
        },
    }
    endpoints: Manifest = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**_DNS, "labels": {"kubernetes.io/service-name": _DNS["name"]}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [node.address], "conditions": {"ready": True}}],
        "ports": [{"name": name, "protocol": protocol, "port": 53} for name, protocol in _PORTS],
    }
    return [
        (CLUSTER_ROLES, role),
        (CLUSTER_ROLE_BINDINGS, _binding("alnair-coredns", "alnair-coredns", "coredns")),
        # What the API server may ask of a kubelet: logs, exec, port-forward.
        (
            CLUSTER_ROLE_BINDINGS,
            _binding("alnair-kubelet-api", "system:kubelet-api-admin", "kubelet-client"),
        ),
        (SERVICES, service),
        (ENDPOINT_SLICES, endpoints),
    ]


def _binding(name: str, role: str, identity: str) -> Manifest:
    subject: dict[str, Any] = {
        "apiGroup": _RBAC,
        "kind": "User",
        "name": NODE_IDENTITIES[identity].user,
    }
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


async def install(client: Client, node: NodeSettings) -> None:
    """Has them all there as they should be."""
    for resource, manifest in objects(node):
        await client.apply(resource, manifest, field_manager=FIELD_MANAGER)


async def remove(client: Client) -> None:
    """Removes what would mislead once the node is gone: the way to its DNS, and the Node."""
    try:
        await client.get(NODES, NAME)
    except NotFound:
        return
    for resource, name, namespace in (
        (ENDPOINT_SLICES, _DNS["name"], _DNS["namespace"]),
        (SERVICES, _DNS["name"], _DNS["namespace"]),
        # Last: it tells that the others may be there.
        (NODES, NAME, None),
    ):
        try:
            await client.delete(resource, name, namespace)
        except NotFound:
            continue
