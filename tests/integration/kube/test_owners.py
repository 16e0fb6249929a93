"""Owners of pods are found through the discovery of a real API server, whatever their kinds."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from alnair.kube.client import Client
from alnair.kube.objects import wire
from alnair.kube.owners import OwnerWalk, controller_of
from alnair.kube.resources import CRDS, PODS, SERVICE_ACCOUNTS, Manifest, Resource, grouped
from alnair.local.components.components import BARE
from alnair.local.controlplane import LocalCluster
from alnair.model.owners import Owner, OwnerRef, run_of, series_of
from kit.live.impersonation import client_as
from kit.live.scheduler_process import eventually, pod
from kit.live.shared_clusters import SharedClusters

#: Kinds of others, as their projects call them; two of them are called Job.
CUSTOM = (
    ("batch.volcano.sh", "v1alpha1", "jobs", "Job"),
    ("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet"),
    ("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob"),
    ("kubeflow.org", "v2beta1", "mpijobs", "MPIJob"),
    ("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet"),
    ("ray.io", "v1", "rayclusters", "RayCluster"),
    ("ray.io", "v1", "rayjobs", "RayJob"),
    ("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob"),
)
KINDS: dict[str, Resource[Manifest]] = {
    "Deployment": grouped("apps", "v1", "deployments", "Deployment"),
    "ReplicaSet": grouped("apps", "v1", "replicasets", "ReplicaSet"),
    "StatefulSet": grouped("apps", "v1", "statefulsets", "StatefulSet"),
    "CronJob": grouped("batch", "v1", "cronjobs", "CronJob"),
    "Job": grouped("batch", "v1", "jobs", "Job"),
    "vcjob": grouped("batch.volcano.sh", "v1alpha1", "jobs", "Job"),
    "Pod": PODS,
    **{kind: grouped(*rest, kind) for *rest, kind in CUSTOM if kind != "Job"},
}
TEMPLATE = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "pause"}]},
}
ALWAYS = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Always"}}
SELECTED: dict[str, Any] = {
    "selector": {"matchLabels": {"app": "x"}},
    "replicas": 0,
    "template": ALWAYS,
}
SPECS: dict[str, dict[str, Any]] = {
    "Deployment": SELECTED,
    "ReplicaSet": SELECTED,
    "StatefulSet": {**SELECTED, "serviceName": "x"},
    "Job": {"template": TEMPLATE, "suspend": True},
    "CronJob": {
        "schedule": "0 0 1 1 *",
        "suspend": True,
        "jobTemplate": {"spec": {"template": TEMPLATE}},
    },
}


@pytest.fixture
def cluster(shared_clusters: SharedClusters) -> LocalCluster:
    """A cluster without controllers, which would end or release what only looks like theirs."""
    return shared_clusters.get("owners", components=BARE)


@pytest.fixture
async def namespace(client: Client, make_namespace: Callable[[], Awaitable[str]]) -> str:
    """A namespace in which pods can be made."""
    name = await make_namespace()
    await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default", "namespace": name}})
    return name


async def make_kinds(client: Client) -> None:
    """Make the custom kinds, with any fields."""
    for group, version, plural, kind in CUSTOM:
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        names = {"plural": plural, "kind": kind, "singular": kind.lower()}
        crd = {
            "apiVersion": CRDS.api_version,
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": names,
                "versions": [
                    {
                        "name": version,
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": schema},
                    }
                ],
            },
        }
        await client.apply(CRDS, crd, field_manager="test")

    async def served() -> bool:
        for group, version, plural, kind in CUSTOM:
            try:
                await client.list(grouped(group, version, plural, kind))
            except Exception:  # noqa: BLE001
                return False
        return True

    await eventually(served, what="the kinds are served")


async def made(client: Client, namespace: str, *kinds: str) -> Manifest:
    """Make a chain of objects, the topmost first; return the pod at its end."""
    above: list[dict[str, Any]] = []
    found: Manifest = {}
    for number, kind in enumerate((*kinds, "Pod")):
        resource = KINDS[kind]
        name = f"{kind.lower()}-{number}"
        body = {"apiVersion": resource.api_version, "kind": resource.kind}
        if kind == "Pod":
            body = pod(namespace, name)
            body["spec"]["schedulingGates"] = [{"name": "test/never"}]
        else:
            body["spec"] = SPECS.get(kind, {})
        body["metadata"] = {"name": name, "namespace": namespace, "ownerReferences": above}
        found = await client.create(resource, body)
        above = [
            {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "name": name,
                "uid": found["metadata"]["uid"],
                "controller": True,
            }
        ]
    return found


def lowest(found: Manifest) -> Owner:
    """A pod as the begin of a walk."""
    meta = found["metadata"]
    references = [
        wire.OwnerReference(one["apiVersion"], one["kind"], one["name"], one["uid"], True)
        for one in meta.get("ownerReferences", ())
    ]
    known = wire.ObjectMeta(namespace=meta["namespace"], owner_references=references)
    ref = OwnerRef("", "v1", "Pod", meta["namespace"], meta["name"], meta["uid"])
    return Owner(ref=ref, controller=controller_of(known))


@pytest.mark.parametrize(
    "kinds",
    [
        (),
        ("Deployment", "ReplicaSet"),
        ("StatefulSet",),
        ("Job",),
        ("CronJob", "Job"),
        ("TrainJob", "JobSet", "Job"),
        ("PyTorchJob",),
        ("MPIJob", "Job"),
        ("LeaderWorkerSet", "StatefulSet", "Pod", "StatefulSet"),
        ("RayJob", "RayCluster"),
        ("vcjob",),
    ],
    ids=lambda kinds: "-".join(kinds) or "bare",
)
async def test_a_walk_ends_at_the_topmost_controller(
    client: Client, namespace: str, kinds: tuple[str, ...]
) -> None:
    await make_kinds(client)
    found = await made(client, namespace, *kinds)
    chain = await OwnerWalk(client, time.monotonic).chain(lowest(found))
    assert len(chain) == len(kinds) + 1
    assert all(one.readable for one in chain)
    top = next((kind for kind in kinds if kind != "CronJob"), "Pod")
    run = run_of(chain).ref
    assert (run.group, run.kind) == (KINDS[top].group, KINDS[top].kind)
    expected = "CronJob/cronjob-0" if "CronJob" in kinds else f"{run.kind}/"
    assert series_of(chain).startswith(expected)


async def test_a_walk_ends_at_an_owner_that_may_not_be_read_or_is_gone(
    client: Client, cluster: LocalCluster, namespace: str
) -> None:
    found = await made(client, namespace, "Deployment", "ReplicaSet")
    async with client_as(cluster, "nobody-in-particular") as other:
        chain = await OwnerWalk(other, time.monotonic).chain(lowest(found))
    assert [(one.ref.kind, one.readable) for one in chain] == [("Pod", True), ("ReplicaSet", False)]
    assert run_of(chain).ref.uid == chain[-1].ref.uid
    begin = lowest(found)
    assert begin.controller is not None
    for gone in ({"name": "never-was"}, {"uid": "another-one"}, {"group": "no.such.group"}):
        ref = OwnerRef(
            **{
                **{name: getattr(begin.controller, name) for name in OwnerRef.__struct_fields__},
                **gone,
            }
        )
        start = Owner(ref=begin.ref, controller=ref)
        chain = await OwnerWalk(client, time.monotonic).chain(start)
        assert [one.readable for one in chain] == [True, False]


async def test_an_owner_is_asked_for_once_and_few_are_remembered(
    client: Client, namespace: str
) -> None:
    found = await made(client, namespace, "Deployment", "ReplicaSet")
    walk = OwnerWalk(client, time.monotonic, most=2)
    before = await walk.chain(lowest(found))
    for kind in ("ReplicaSet", "Deployment"):
        name = f"{kind.lower()}-{int(kind == 'ReplicaSet')}"
        await client.delete(KINDS[kind], name, namespace, propagation="Orphan")
    assert await walk.chain(lowest(found)) == before
