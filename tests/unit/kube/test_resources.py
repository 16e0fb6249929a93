"""Where kinds live under the API server's root."""

import pytest

from alnair.kube.resources import CLUSTER_ROLES, CRDS, LEASES, NODES, PODS


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (PODS.collection(), "/api/v1/pods"),
        (PODS.collection("a"), "/api/v1/namespaces/a/pods"),
        (PODS.item("p", "a", "binding"), "/api/v1/namespaces/a/pods/p/binding"),
        (NODES.item("n"), "/api/v1/nodes/n"),
        (NODES.item("n", "ignored", "status"), "/api/v1/nodes/n/status"),
        (
            LEASES.item("l", "kube-system"),
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l",
        ),
        (
            CLUSTER_ROLES.item("system:node"),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
        ),
        (
            CRDS.collection(),
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        ),
    ],
)
def test_paths_are_those_of_the_api(path: str, expected: str) -> None:
    assert path == expected


def test_a_resource_knows_its_api_version() -> None:
    assert (PODS.api_version, LEASES.api_version) == ("v1", "coordination.k8s.io/v1")


def test_a_namespaced_object_without_namespace_is_refused_before_any_request() -> None:
    with pytest.raises(ValueError, match="Pod 'p' lives in a namespace"):
        PODS.item("p")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../nodes", "a%2fb"])
def test_a_name_cannot_lead_elsewhere(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name"):
        NODES.item(name)
    with pytest.raises(ValueError, match="cannot be the name"):
        PODS.item(name, "n")


def test_strange_characters_are_escaped() -> None:
    assert NODES.item("a b?c#d") == "/api/v1/nodes/a%20b%3Fc%23d"
