"""Our scheduler as the only one of a cluster: what names no scheduler is placed too."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import NODES, PODS, Manifest, grouped
from alnair.local.components.components import FULL
from alnair.local.controlplane import LocalCluster
from alnair.local.nodelist import alike
from alnair.model import names
from kit.live.scheduler_process import SchedulerProcess, bound, eventually, pod

DAEMON_SETS = grouped("apps", "v1", "daemonsets", "DaemonSet")
DEPLOYMENTS = grouped("apps", "v1", "deployments", "Deployment")
SYSTEM = "kube-system"
COUNT = 3


def workload(kind: str, name: str, namespace: str, spec: Manifest, **more: object) -> Manifest:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **more},
    }


def containers(cpu: str = "50m") -> list[Manifest]:
    return [{"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}]


async def test_a_cluster_without_kube_scheduler_places_everything(
    make_cluster: Callable[..., LocalCluster], tmp_path: Path
) -> None:
    cluster = make_cluster(components=[c for c in FULL if c != "kube-scheduler"])
    cluster.prepare()
    await cluster.up()
    await cluster.add_nodes(alike(COUNT, 2, "T4"))
    async with Client(client_config.load(cluster.kubeconfig())) as admin:
        taint = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]
        first = (await admin.list(NODES)).items[0]["metadata"]["name"]
        await admin.merge_patch(NODES, first, {"spec": {"taints": taint}})
        everywhere = {"tolerations": [{"operator": "Exists"}], "containers": containers()}
        await admin.create(
            DAEMON_SETS,
            workload("DaemonSet", "proxy", SYSTEM, everywhere),
        )
        critical = {"priorityClassName": "system-cluster-critical", "containers": containers()}
        await admin.create(DEPLOYMENTS, workload("Deployment", "dns", SYSTEM, critical, replicas=2))
        gpu = pod("default", "train", limits={names.GPU: 1}, scheduler="default-scheduler")
        await admin.create(PODS, gpu)
        large = pod("default", "large", cpu="9999", scheduler="default-scheduler")
        await admin.create(PODS, large)
        process = SchedulerProcess(cluster, tmp_path, "only", "--only")
        try:
            await eventually(lambda: _all_placed(admin), what="system pods and the GPU pod")
            assert (await bound(admin, "default"))["train"] != first

            async def is_told() -> bool:
                status = (await admin.get(PODS, "large", "default")).get("status", {})
                conditions = status.get("conditions") or []
                return any(c["reason"] == "Unschedulable" for c in conditions)

            await eventually(is_told)
        finally:
            process.close()


async def _all_placed(admin: Client) -> bool:
    system, default = await asyncio.gather(bound(admin, SYSTEM), bound(admin, "default"))
    proxies = {node for name, node in system.items() if name.startswith("proxy-")}
    replicas = [name for name in system if name.startswith("dns-")]
    return len(proxies) == COUNT and len(replicas) == 2 and "train" in default
