"""`alnair rebalance` on a real API server: the plan, and the moves one by one."""

import asyncio
import json
import subprocess
import sys
from typing import Any

from alnair.kube.client import Client
from alnair.kube.resources import NODES, grouped
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from kit.live.scheduler_process import StartScheduler, bound, eventually, pod

REPLICA_SETS = grouped("apps", "v1", "replicasets", "ReplicaSet")


def replica_set(namespace: str, name: str, gpus: int) -> dict[str, Any]:
    """A ReplicaSet of one pod."""
    template = pod(namespace, name, limits={names.GPU: str(gpus)})
    template["metadata"] = {"labels": {"app": name}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


async def run(cluster: LocalCluster, *flags: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "alnair", "rebalance", f"--kubeconfig={cluster.kubeconfig()}"]
    return await asyncio.to_thread(
        subprocess.run, [*command, *flags], capture_output=True, text=True, timeout=120
    )


async def test_whole_gpus_are_freed_by_moving_a_pod_that_its_controller_replaces(
    admin: Client, namespace: str, start_scheduler: StartScheduler, gpu_cluster: LocalCluster
) -> None:
    start_scheduler()
    nodes = (await admin.list(NODES)).items
    # Three of the four GPUs of each node, so each is on a node of its own; then room for a move.
    for i in range(len(nodes)):
        await admin.create(REPLICA_SETS, replica_set(namespace, f"big-{i}", 3))

    async def placed(count: int) -> bool:
        return len(await bound(admin, namespace)) == count

    await eventually(lambda: placed(len(nodes)))
    await admin.create(REPLICA_SETS, replica_set(namespace, "small", 1))
    await eventually(lambda: placed(len(nodes) + 1))
    before = await bound(admin, namespace)
    small = next(name for name in before if name.startswith("small"))
    await admin.delete(
        REPLICA_SETS,
        next(n for n in before if n.startswith("big") and before[n] == before[small]).rpartition(
            "-"
        )[0],
        namespace,
    )
    await eventually(lambda: placed(len(nodes)))
    before = await bound(admin, namespace)

    dry = await run(gpu_cluster, "--free-gpus=4", "--json")
    assert dry.returncode == 0, dry.stderr
    plan = json.loads(dry.stdout)
    (move,) = plan["moves"]
    assert (move["name"], move["source"], plan["node"]) == (small, before[small], before[small])
    assert move["target"] not in ("", plan["node"])
    assert await bound(admin, namespace) == before

    done = await run(gpu_cluster, "--free-gpus=4", "--apply")
    assert done.returncode == 0, done.stderr
    assert f"{namespace}/{small} left {plan['node']}" in done.stderr
    await eventually(lambda: placed(len(nodes)))
    assert plan["node"] not in (await bound(admin, namespace)).values()
    freed = await admin.get(NODES, plan["node"])
    assert not freed["spec"].get("unschedulable")

    again = await run(gpu_cluster, "--free-gpus=4")
    assert again.stdout == f"node {plan['node']} is free already: nothing needs to be moved\n"
    await admin.delete_collection(REPLICA_SETS, namespace)
