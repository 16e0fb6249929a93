"""What is installed for a real node leads to it, and gives no more than is needed."""

from pathlib import Path

from alnair.local.access.certificates import NODE_IDENTITIES
from alnair.local.layout import Layout
from alnair.local.real_node.cluster_objects import objects
from alnair.local.real_node.settings import NAME, NodeSettings
from alnair.model.names import AGENT

NODE = NodeSettings(Layout(Path("/clusters"), "one"), 7, 2, "h100", 16400)


def test_the_dns_service_leads_to_the_nodes_address() -> None:
    by_kind = {manifest["kind"]: manifest for _, manifest in objects(NODE)}
    assert by_kind["Service"]["spec"]["clusterIP"] == "10.96.0.10"
    slice_ = by_kind["EndpointSlice"]
    assert slice_["endpoints"] == [{"addresses": [NODE.address], "conditions": {"ready": True}}]
    label = slice_["metadata"]["labels"]["kubernetes.io/service-name"]
    assert label == by_kind["Service"]["metadata"]["name"]


def test_dns_may_only_read() -> None:
    [role] = (manifest for _, manifest in objects(NODE) if manifest["kind"] == "ClusterRole")
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}


def test_the_kubelet_is_known_as_the_node_that_it_is() -> None:
    assert NODE_IDENTITIES["kubelet"].user == f"system:node:{NAME}"
    assert NODE_IDENTITIES["kubelet"].groups == ("system:nodes",)


def test_the_agent_is_known_as_the_one_of_its_node() -> None:
    assert NODE_IDENTITIES["agent"].user == f"{AGENT}:{NAME}"
    assert NODE_IDENTITIES["agent"].groups == ("alnair-agents",)
