"""An agent's identity may do an agent's work and no more, by the API server's own word."""

from collections.abc import Callable

import pytest

from alnair.kube.client import Client
from alnair.kube.resources import Manifest, grouped
from alnair.local.access.certificates import NODE_IDENTITIES
from alnair.local.controlplane import LocalCluster
from kit.live.impersonation import client_as

REVIEWS = grouped(
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    namespaced=False,
)
AGENT = NODE_IDENTITIES["agent"]
ACCOUNT = "system:serviceaccount:alnair-system:alnair-agent"


def certificate(cluster: LocalCluster) -> Client:
    return client_as(cluster, AGENT.user, *AGENT.groups)


def account(cluster: LocalCluster) -> Client:
    return client_as(cluster, ACCOUNT, "system:serviceaccounts")


async def may(client: Client, verb: str, what: str, namespace: str = "alnair-system") -> bool:
    """Ask for `GROUP/RESOURCE` or `GROUP/RESOURCE/SUBRESOURCE`; the core group is empty."""
    group, resource, subresource, *_ = (*what.split("/"), "")
    attributes = {
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "namespace": namespace,
    }
    review: Manifest = {
        "apiVersion": REVIEWS.api_version,
        "kind": REVIEWS.kind,
        "spec": {"resourceAttributes": attributes},
    }
    return bool((await client.create(REVIEWS, review))["status"]["allowed"])


@pytest.mark.parametrize("identity", [certificate, account])
async def test_an_agents_identity_may_do_its_work_and_no_more(
    cluster: LocalCluster, identity: Callable[[LocalCluster], Client]
) -> None:
    work = [
        *(f"{verb} /{kind}" for kind in ("nodes", "pods") for verb in ("list", "watch", "patch")),
        *("patch /nodes/status", "patch /pods/status", "create /pods/eviction"),
        *("create /events", "get /nodes"),
        *("create coordination.k8s.io/leases", "patch coordination.k8s.io/leases"),
        "patch topology.node.k8s.io/noderesourcetopologies",
    ]
    more = [
        *("get /secrets", "list /configmaps", "create /pods", "delete /pods", "update /pods"),
        *("delete /nodes", "create /nodes", "create /pods/binding", "create /pods/exec"),
        *("delete coordination.k8s.io/leases", "list coordination.k8s.io/leases"),
        *("create /serviceaccounts/token", "update coordination.k8s.io/leases"),
    ]
    async with identity(cluster) as client:
        assert [ask for ask in work if not await may(client, *ask.split())] == []
        assert [ask for ask in more if await may(client, *ask.split())] == []
        assert not await may(client, "patch", "coordination.k8s.io/leases", "kube-node-lease")
