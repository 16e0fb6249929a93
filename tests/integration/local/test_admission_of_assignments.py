"""Which GPU a pod gets is written by who has the right, however it is written."""

import json
from typing import Any

import msgspec
import pytest

from alnair.kube.client import MERGE_PATCH, Client
from alnair.kube.errors import Forbidden
from alnair.kube.resources import (
    ACCESS_REVIEWS,
    PODS,
    ROLE_BINDINGS,
    Manifest,
)
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from kit.live.impersonation import client_as
from kit.live.scheduler_process import eventually

DOCUMENT = json.dumps({"v": 1, "t": "2026-01-01T00:00:00Z", "containers": {}})
FORGED = {names.GPU_ASSIGNMENT: DOCUMENT}
SENTENCE = "gpu-assignment is written by the scheduler: leave it as it is"
USER = "somebody"


def pod(name: str, annotations: dict[str, str] | None = None) -> Manifest:
    meta = {"name": name, "annotations": annotations or {}}
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "none"}]}
    return {"metadata": meta, "spec": spec}


async def patch(client: Client, namespace: str, name: str, subresource: str, value: Any) -> None:
    await client.raw(
        "PATCH",
        PODS.item(name, namespace, subresource or None),
        body=msgspec.json.encode({"metadata": {"annotations": value}}),
        content_type=MERGE_PATCH,
    )


async def permit(client: Client, namespace: str, user: str) -> None:
    """The rights of a namespace's administrator, and more of pods than those have."""
    binding = {
        "metadata": {"name": user, "namespace": namespace},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "system:kube-scheduler",
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    await client.create(ROLE_BINDINGS, binding)
    editor = {**binding, "metadata": {"name": f"{user}-edits", "namespace": namespace}}
    editor["roleRef"] = {**binding["roleRef"], "name": "edit"}
    await client.create(ROLE_BINDINGS, editor)

    async def has_both() -> bool:
        return await may(client, namespace, user, "") and await may(
            client, namespace, user, "binding"
        )

    await eventually(has_both, what="the API server knows the rights")


async def may(client: Client, namespace: str, user: str, subresource: str) -> bool:
    """Whether the API server lets this user create pods, or one of their subresources."""
    pods = {"namespace": namespace, "verb": "create", "resource": "pods"}
    spec = {"user": user, "resourceAttributes": {**pods, "subresource": subresource}}
    kind = {"apiVersion": ACCESS_REVIEWS.api_version, "kind": ACCESS_REVIEWS.kind}
    review: Manifest = await client.create(ACCESS_REVIEWS, {**kind, "spec": spec})
    return bool(review["status"]["allowed"])


async def test_nobody_forges_an_assignment(
    cluster: LocalCluster, client: Client, namespace: str
) -> None:
    await permit(client, namespace, USER)
    made = await client.create(PODS, pod("given", FORGED), namespace)
    assert made["metadata"]["annotations"] == FORGED
    async with client_as(cluster, USER) as user:
        with pytest.raises(Forbidden, match=SENTENCE):
            await user.create(PODS, pod("forged", FORGED), namespace)
        bare = await user.create(PODS, pod("bare", {"mine": "x"}), namespace)
        for subresource in ("", "status"):
            with pytest.raises(Forbidden, match=SENTENCE):
                await patch(user, namespace, "bare", subresource, FORGED)
            with pytest.raises(Forbidden, match=SENTENCE):
                await patch(user, namespace, "given", subresource, {names.GPU_ASSIGNMENT: None})
            await patch(user, namespace, "given", subresource, {"mine": f"y{subresource}"})
        uid = bare["metadata"]["uid"]
        with pytest.raises(Forbidden, match=SENTENCE):
            await user.bind(namespace, "bare", uid, "some-node", FORGED)
        await user.bind(namespace, "bare", uid, "some-node")


async def test_our_scheduler_has_the_right(
    cluster: LocalCluster, client: Client, namespace: str
) -> None:
    made = await client.create(PODS, pod("bare"), namespace)
    async with client_as(cluster, "alnair-scheduler") as scheduler:
        await scheduler.bind(namespace, "bare", made["metadata"]["uid"], "some-node", FORGED)
    found = await client.get(PODS, "bare", namespace)
    assert found["metadata"]["annotations"] == FORGED
