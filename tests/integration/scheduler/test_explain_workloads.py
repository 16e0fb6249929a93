"""`alnair explain` of what makes pods, named as kubectl does."""

from typing import Any

from alnair.kube.client import Client
from alnair.kube.resources import CONFIGMAPS, DEPLOYMENTS, JOBS, PODS, Manifest, core
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from kit.command import alnair, last_json
from kit.live.scheduler_process import eventually, pod


def told(cluster: LocalCluster, namespace: str, *wanted: str) -> Any:
    done = alnair(
        "explain",
        *wanted,
        "-n",
        namespace,
        "--offline",
        "--json",
        "--kubeconfig",
        cluster.kubeconfig(),
    )
    assert done.returncode == 0, done.stderr
    return last_json(done)


def refused(cluster: LocalCluster, namespace: str, *wanted: str) -> str:
    done = alnair("explain", *wanted, "-n", namespace, "--kubeconfig", cluster.kubeconfig())
    assert done.returncode == 1, (done.stdout, done.stderr)
    return done.stderr


def template(namespace: str, gpus: int) -> Manifest:
    made = pod(namespace, "any", labels={"app": "web"}, limits={names.GPU: str(gpus)})
    return {"metadata": {"labels": {"app": "web"}}, "spec": made["spec"]}


async def pods(admin: Client, namespace: str) -> int:
    return len((await admin.list(PODS, namespace)).items)


async def test_the_pod_of_a_deployment_that_waits_is_found_through_its_replica_set(
    gpu_cluster: LocalCluster, admin: Client, namespace: str
) -> None:
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template(namespace, 99),
    }
    meta = {"name": "web", "namespace": namespace}
    await admin.create(
        DEPLOYMENTS,
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec},
    )

    async def both() -> bool:
        return await pods(admin, namespace) == 2

    await eventually(both)
    for wanted in (("deploy/web",), ("deployments.apps", "web"), ("Deployment/web",)):
        found = told(gpu_cluster, namespace, *wanted)
        assert found["pod"].startswith(f"{namespace}/web-")
        assert "Deployment web has 2 pods, 2 without a node: this is web-" in found["notes"][0]
        assert "Insufficient nvidia.com/gpu" in found["message"]
    assert "did you mean deploy/web?" in refused(gpu_cluster, namespace, "web")
    assert "did you mean web?" in refused(gpu_cluster, namespace, "deploy/wed")
    assert "did you mean deploy" in refused(gpu_cluster, namespace, "deplo/web")
    assert "a Node has no pods that wait for it" in refused(gpu_cluster, namespace, "node/web")


async def test_a_job_without_pods_says_why_it_has_none(
    gpu_cluster: LocalCluster, admin: Client, namespace: str
) -> None:
    spec = {"suspend": True, "template": template(namespace, 1)}
    spec["template"]["spec"]["restartPolicy"] = "Never"
    job = {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}
    await admin.create(JOBS, job | {"metadata": {"name": "later", "namespace": namespace}})
    assert "Job later has no pods: it is suspended" in refused(gpu_cluster, namespace, "job/later")
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none", "namespace": namespace},
        "spec": {"hard": {"pods": "0"}},
    }
    quotas = core("resourcequotas", "ResourceQuota")
    await admin.create(quotas, quota)

    async def is_in_force() -> bool:
        found = await admin.get(quotas, "none", namespace)
        return "hard" in (found.get("status") or {})

    await eventually(is_in_force)
    job["spec"] = spec | {"suspend": False}
    await admin.create(JOBS, job | {"metadata": {"name": "never", "namespace": namespace}})

    async def says_why() -> bool:
        return "exceeded quota: none" in refused(gpu_cluster, namespace, "job/never")

    await eventually(says_why)


async def test_pods_are_found_whose_names_do_not_begin_with_that_of_what_made_them(
    gpu_cluster: LocalCluster, admin: Client, namespace: str
) -> None:
    """As those of a training job: elastictorchjob-NAME-workers-0-abcde."""
    meta = {"name": "mine", "namespace": namespace}
    config = {"apiVersion": "v1", "kind": "ConfigMap"}
    made = await admin.create(CONFIGMAPS, config | {"metadata": meta})
    owner = config | {"name": "mine", "uid": made["metadata"]["uid"], "controller": True}
    spec = {"template": template(namespace, 99)}
    spec["template"]["spec"]["restartPolicy"] = "Never"
    meta = {"name": "a-mine-workers", "namespace": namespace, "ownerReferences": [owner]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}
    await admin.create(JOBS, job)

    async def is_there() -> bool:
        return await pods(admin, namespace) == 1

    await eventually(is_there)
    found = told(gpu_cluster, namespace, "configmap/mine")
    assert found["pod"].startswith(f"{namespace}/a-mine-workers-")
