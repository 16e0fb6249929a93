"""Kubernetes' own PodGroups, which an API server serves only when told to: found by discovery."""

from collections.abc import Callable
from pathlib import Path

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.pod_groups import dialects
from alnair.kube.resources import NAMESPACES, PODS, Manifest
from alnair.local.controlplane import LocalCluster
from alnair.local.nodelist import alike
from kit.live.scheduler_process import ControllerProcess, SchedulerProcess, bound, eventually, pod

V1ALPHA2 = dialects.NATIVE["v1alpha2"]
FLAGS = (
    "--feature-gates=GenericWorkload=true,GangScheduling=true",
    "--runtime-config=scheduling.k8s.io/v1alpha2=true",
)


def member(name: str) -> Manifest:
    made = pod("native", name)
    made["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    return made


async def test_a_native_group_is_placed_whole_and_told_that_it_is_scheduled(
    make_cluster: Callable[..., LocalCluster], tmp_path: Path
) -> None:
    cluster = make_cluster(extra_args={"kube-apiserver": FLAGS})
    await cluster.up()
    await cluster.add_nodes(alike(1, 1, "T4"))
    processes = [
        SchedulerProcess(cluster, tmp_path, "scheduler-0"),
        ControllerProcess(cluster, tmp_path, "controller-0"),
    ]
    try:
        async with Client(client_config.load(cluster.kubeconfig())) as admin:
            await admin.create(NAMESPACES, {"metadata": {"name": "native"}})
            group = {
                "apiVersion": V1ALPHA2.api_version,
                "kind": "PodGroup",
                "metadata": {"name": "g", "namespace": "native"},
                "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
            }
            await admin.create(V1ALPHA2, group)
            await admin.create(PODS, member("g-0"))
            await eventually(lambda: scheduled(admin, "False"), what="condition False")
            assert await bound(admin, "native") == {}
            await admin.create(PODS, member("g-1"))
            await eventually(lambda: scheduled(admin, "True"), what="condition True")
            assert len(await bound(admin, "native")) == 2
    finally:
        for process in processes:
            process.close()
            print(process.log.read_text()[-4000:])


async def scheduled(client: Client, status: str) -> bool:
    found = await client.get(V1ALPHA2, "g", "native")
    return [
        (c["type"], c["status"]) for c in (found.get("status") or {}).get("conditions") or ()
    ] == [("PodGroupScheduled", status)]
