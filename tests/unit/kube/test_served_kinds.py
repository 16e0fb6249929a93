"""Which kind a word means, as kubectl reads it."""

import json

import pytest

from alnair.kube.served_kinds import ServedKind, meant, read, words


def kind(name: str, plural: str, *short: str, scope: str = "Namespaced") -> dict[str, object]:
    return {
        "resource": plural,
        "responseKind": {"group": "", "version": "", "kind": name},
        "scope": scope,
        "singularResource": name.lower(),
        "shortNames": list(short),
        "verbs": ["get", "list"],
    }


def group(name: str, version: str, *kinds: dict[str, object]) -> bytes:
    one = {
        "metadata": {"name": name} if name else {},
        "versions": [{"version": version, "resources": list(kinds)}],
    }
    return json.dumps({"kind": "APIGroupDiscoveryList", "items": [one]}).encode()


@pytest.fixture
def kinds() -> list[ServedKind]:
    nodes = kind("Node", "nodes", "no", scope="Cluster")
    return [
        *read(group("", "v1", kind("Pod", "pods", "po"), nodes, kind("Event", "events", "ev"))),
        *read(group("apps", "v1", kind("Deployment", "deployments", "deploy"))),
        *read(group("batch", "v1", kind("Job", "jobs"))),
        *read(group("batch.volcano.sh", "v1alpha1", kind("Job", "jobs", "vcjob"))),
        *read(group("events.k8s.io", "v1", kind("Event", "events", "ev"))),
    ]


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ("job", "/apis/batch/v1/namespaces/a/jobs"),
        ("Jobs", "/apis/batch/v1/namespaces/a/jobs"),
        ("jobs.batch", "/apis/batch/v1/namespaces/a/jobs"),
        ("jobs.batch.volcano.sh", "/apis/batch.volcano.sh/v1alpha1/namespaces/a/jobs"),
        ("vcjob", "/apis/batch.volcano.sh/v1alpha1/namespaces/a/jobs"),
        ("deployments.v1.apps", "/apis/apps/v1/namespaces/a/deployments"),
        ("deploy", "/apis/apps/v1/namespaces/a/deployments"),
        ("ev", "/api/v1/namespaces/a/events"),
        ("no", "/api/v1/nodes"),
    ],
)
def test_a_word_means_what_it_means_to_kubectl(
    kinds: list[ServedKind], word: str, path: str
) -> None:
    found = meant(word, kinds)
    assert found is not None
    assert found.collection("a") == path


def test_other_words_mean_nothing_and_the_known_ones_are_those_of_namespaces(
    kinds: list[ServedKind],
) -> None:
    assert meant("jobbs", kinds) is None
    assert meant("jobs.apps", kinds) is None
    assert {"job", "jobs", "deploy", "vcjob"} <= words(kinds)
    assert "nodes" not in words(kinds)


def test_an_old_server_that_answers_otherwise_serves_nothing_that_we_know() -> None:
    assert read(b'{"kind":"APIGroupList","groups":[{"name":"apps"}]}') == []
