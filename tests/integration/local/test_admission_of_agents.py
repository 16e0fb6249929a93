"""An agent changes its own node and the pods on it, and of these only what is an agent's matter."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from alnair.kube.client import STRATEGIC_MERGE, Client
from alnair.kube.errors import ApiError, Forbidden, NotFound
from alnair.kube.resources import (
    LEASES,
    NODE_RESOURCE_TOPOLOGIES,
    NODES,
    PODS,
    Manifest,
    Resource,
)
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from kit.live.impersonation import client_as
from kit.live.scheduler_process import eventually

ACCOUNT = "system:serviceaccount:alnair-system:alnair-agent"
NODE_OF_TOKEN = "authentication.kubernetes.io/node-name"
ANNOTATED = {"metadata": {"annotations": {names.UTILIZATION: "{}"}}}
CONDITION = {"type": names.VGPU_VIOLATION, "status": "True", "reason": "X", "message": "x"}


@dataclass(frozen=True)
class Scene:
    """Two nodes with a pod on each, and the agent of the first."""

    agent: Client
    mine: str
    other: str
    namespace: str

    async def patch(
        self, resource: Resource[Any], name: str, patch: Manifest, subresource: str = ""
    ) -> None:
        """As strategic merge, so that conditions of others stay."""
        namespace = self.namespace if resource.namespaced else None
        path = resource.item(name, namespace, subresource or None)
        body = msgspec.json.encode(patch)
        await self.agent.raw("PATCH", path, body=body, content_type=STRATEGIC_MERGE)


@pytest.fixture(params=["certificate", "token"])
async def scene(
    cluster: LocalCluster, client: Client, namespace: str, request: pytest.FixtureRequest
) -> AsyncIterator[Scene]:
    mark = uuid.uuid4().hex[:8]
    mine, other = f"mine-{mark}", f"other-{mark}"
    for node in (mine, other):
        await client.create(NODES, {"metadata": {"name": node, "labels": {"zone": "a"}}})
        spec = {"nodeName": node, "containers": [{"name": "main", "image": "none"}]}
        await client.create(PODS, {"metadata": {"name": f"on-{node}"}, "spec": spec}, namespace)
    agent = (
        client_as(cluster, f"alnair-agent:{mine}", "alnair-agents")
        if request.param == "certificate"
        else client_as(cluster, ACCOUNT, "system:serviceaccounts", extra={NODE_OF_TOKEN: mine})
    )
    async with agent:
        yield Scene(agent, mine, other, namespace)
    for node in (mine, other):
        await client.delete(NODES, node)


async def test_an_agent_writes_what_is_its_matter(scene: Scene) -> None:
    node = {"metadata": {"labels": {names.VGPU_TIER: "A-B", names.GPU_MODEL_LABEL: "T4"}}}
    await scene.patch(NODES, scene.mine, node)
    await scene.patch(
        NODES, scene.mine, {"metadata": {"annotations": {names.VGPU_PROMISE: "much"}}}
    )
    amounts = {names.VGPU_MEMORY: "100", names.VGPU_COMPUTE: "100"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [CONDITION]}
    await scene.patch(NODES, scene.mine, {"status": status}, "status")
    await scene.patch(NODES, scene.mine, {"metadata": {"labels": {names.VGPU_TIER: None}}})
    pod = f"on-{scene.mine}"
    await scene.patch(PODS, pod, ANNOTATED)
    assignment = {"metadata": {"annotations": {names.GPU_ASSIGNMENT: "{}"}}}
    await scene.patch(PODS, pod, assignment)
    await scene.patch(PODS, pod, {"status": {"conditions": [CONDITION]}}, "status")


async def test_an_agent_is_kept_from_other_nodes_and_the_pods_there(scene: Scene) -> None:
    sentence = f"the agent of node {scene.mine} may not change"
    for patch, resource, subresource in (
        (ANNOTATED, NODES, ""),
        ({"status": {"capacity": {names.VGPU_MEMORY: "1"}}}, NODES, "status"),
        (ANNOTATED, PODS, ""),
        ({"status": {"conditions": [CONDITION]}}, PODS, "status"),
    ):
        name = scene.other if resource is NODES else f"on-{scene.other}"
        with pytest.raises(Forbidden, match=f"{sentence} {resource.plural} of node {scene.other}"):
            await scene.patch(resource, name, patch, subresource)


NOT_ITS_MATTER = [
    (NODES, "", {"metadata": {"labels": {"zone": "b"}}}, "not: zone"),
    (NODES, "", {"metadata": {"labels": {"zone": None}}}, "not: zone"),
    (NODES, "status", {"metadata": {"labels": {"zone": "b"}}}, "not: zone"),
    (NODES, "", {"metadata": {"annotations": {"x": "y"}}}, "annotations of ai.centaurus.io/ only"),
    (NODES, "", {"metadata": {"finalizers": ["a/b"]}}, "finalizers and owners of nodes"),
    (NODES, "", {"spec": {"unschedulable": True}}, "the spec of nodes"),
    (NODES, "status", {"status": {"capacity": {"cpu": "1"}}}, "only, not: cpu"),
    (
        NODES,
        "status",
        {"status": {"allocatable": {names.VGPU_MEMORY: "1", "memory": "1"}}},
        "only, not: memory",
    ),
    (
        NODES,
        "status",
        {"status": {"conditions": [CONDITION | {"type": "Ready"}]}},
        "conditions of its own",
    ),
    (
        NODES,
        "status",
        {"status": {"addresses": [{"type": "InternalIP", "address": "1.2.3.4"}]}},
        "and nothing else there",
    ),
    (PODS, "", {"metadata": {"labels": {"app": "x"}}}, "labels of pods: app"),
    (PODS, "status", {"metadata": {"labels": {"app": "x"}}}, "labels of pods: app"),
    (PODS, "", {"metadata": {"annotations": {"x": "y"}}}, "annotations of ai.centaurus.io/ only"),
    (PODS, "", {"metadata": {"finalizers": ["a/b"]}}, "finalizers and owners of pods"),
    (
        PODS,
        "",
        {"spec": {"containers": [{"name": "main", "image": "other"}]}},
        "the spec of pods",
    ),
]


@pytest.mark.parametrize(
    ("resource", "subresource", "patch", "sentence"),
    NOT_ITS_MATTER,
    ids=[f"{case[0].plural} {case[1]} {case[3]}" for case in NOT_ITS_MATTER],
)
@pytest.mark.parametrize("scene", ["certificate"], indirect=True)
async def test_an_agent_leaves_alone_what_is_not_its_matter(
    scene: Scene, resource: Resource[Any], subresource: str, patch: Manifest, sentence: str
) -> None:
    name = scene.mine if resource is NODES else f"on-{scene.mine}"
    with pytest.raises(Forbidden) as refusal:
        await scene.patch(resource, name, patch, subresource)
    assert "ValidatingAdmissionPolicy 'agents.alnair'" in refusal.value.message
    assert sentence in refusal.value.message


async def test_an_agent_has_its_own_lease_and_topology_only(scene: Scene, client: Client) -> None:
    def lease(name: str) -> Manifest:
        return {"metadata": {"name": name, "namespace": names.NAMESPACE}, "spec": {}}

    own = names.AGENT_LEASE_PREFIX + scene.mine
    await scene.agent.create(LEASES, lease(own))
    for name in (names.AGENT_LEASE_PREFIX + scene.other, "alnair-scheduler-x", scene.mine):
        with pytest.raises(Forbidden, match="may not change leases of"):
            await scene.agent.create(LEASES, lease(name))
    await client.delete(LEASES, own, names.NAMESPACE)

    def topology(name: str) -> Manifest:
        kind = NODE_RESOURCE_TOPOLOGIES
        meta = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
        return {**meta, "zones": []}

    await scene.agent.create(NODE_RESOURCE_TOPOLOGIES, topology(scene.mine))
    with pytest.raises(Forbidden, match=f"noderesourcetopologies of node {scene.other}"):
        await scene.agent.create(NODE_RESOURCE_TOPOLOGIES, topology(scene.other))
    await client.delete(NODE_RESOURCE_TOPOLOGIES, scene.mine)


async def are_known(agent: Client, namespace: str, said: dict[str, str]) -> None:
    """Wait for the API server's own list of pods, by which evictions are judged: it comes later.

    Args:
        agent: Who would evict.
        namespace: Of the pods.
        said: What is said of its eviction of each once it is known; "": nothing.
    """

    async def are_so() -> bool:
        return {name: await tried(name) for name in said} == said

    async def tried(name: str) -> str:
        metadata = {"name": name, "namespace": namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        path, data = PODS.item(name, namespace, "eviction"), msgspec.json.encode(body)
        try:
            await agent.raw("POST", path, query={"dryRun": "All"}, body=data)
        except ApiError as error:
            return said[name] if said[name] and said[name] in error.message else error.message
        return ""

    await eventually(are_so, what="the API server knows the pods")


async def test_an_agent_evicts_pods_of_its_own_node_only(scene: Scene, client: Client) -> None:
    others = "may not evict pods of other nodes: on-other"
    said = {f"on-{scene.mine}": "", f"on-{scene.other}": others}
    await are_known(scene.agent, scene.namespace, said)
    await scene.agent.evict(scene.namespace, f"on-{scene.mine}")
    with pytest.raises(NotFound):
        await scene.agent.evict(scene.namespace, "not-there")
    with pytest.raises(Forbidden, match=others):
        await scene.agent.evict(scene.namespace, f"on-{scene.other}")


async def test_an_agent_whose_token_names_no_node_may_write_nothing(
    cluster: LocalCluster, scene: Scene
) -> None:
    async with client_as(cluster, ACCOUNT, "system:serviceaccounts") as agent:
        with pytest.raises(Forbidden, match="credentials name no node"):
            await agent.merge_patch(NODES, scene.mine, ANNOTATED)
        await are_known(agent, scene.namespace, {f"on-{scene.mine}": "may not evict"})
        with pytest.raises(Forbidden, match="may not evict"):
            await agent.evict(scene.namespace, f"on-{scene.mine}")
