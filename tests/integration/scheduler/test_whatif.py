"""`alnair simulate whatif` of a live cluster: what it says is what the scheduler then does."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from alnair.kube.client import Client
from alnair.kube.resources import PODGROUPS, PODS
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from kit.live.scheduler_process import StartScheduler, bound, eventually, pod

Place = tuple[str, list[int]]


async def whatif(cluster: LocalCluster, *flags: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "alnair", "simulate", "whatif", "--from-cluster", "--json"]
    done = await asyncio.to_thread(
        subprocess.run,
        [*command, f"--kubeconfig={cluster.kubeconfig()}", *flags],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode in (0, 1), done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


async def places(client: Client, namespace: str, group: str) -> dict[str, Place]:
    """Pod name → node and GPUs, of the members of a gang that are bound."""
    listing = await client.list(PODS, namespace)
    found = {}
    for one in listing.items:
        meta, node = one["metadata"], one["spec"].get("nodeName")
        if node and (meta.get("labels") or {}).get(names.POD_GROUP_LABEL) == group:
            assignment = json.loads(meta["annotations"][names.GPU_ASSIGNMENT])
            held = [g["index"] for parts in assignment["containers"].values() for g in parts]
            found[meta["name"]] = (node, sorted(held))
    return found


async def test_the_scheduler_puts_a_gang_where_the_answer_says(
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    gpu_cluster: LocalCluster,
    tmp_path: Path,
) -> None:
    start_scheduler()
    for number, gpus in enumerate((1, 3, 2, 2, 1)):
        await admin.create(PODS, pod(namespace, f"old-{number}", limits={names.GPU: str(gpus)}))

    async def old_are_placed() -> bool:
        return len(await bound(admin, namespace)) == 5

    await eventually(old_are_placed)
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": namespace},
        "spec": {"minMember": 5},
    }
    labels = {names.POD_GROUP_LABEL: "gang"}
    members = [
        pod(namespace, f"gang-{i}", limits={names.GPU: "2"}, labels=labels) for i in range(5)
    ]
    file = tmp_path / "gang.yaml"
    file.write_text(yaml.safe_dump_all([group, *members]))

    answer = await whatif(gpu_cluster, f"--submit={file}")
    assert answer["satisfied"]
    told = {f["pod"].partition("/")[2]: (f["node"], f["gpus"]) for f in answer["fates"]}
    assert len(told) == 5
    assert len(await bound(admin, namespace)) == 5  # nothing was written
    assert not (await admin.list(PODGROUPS, namespace)).items

    await admin.create(PODGROUPS, group)
    for member in members:
        await admin.create(PODS, member)

    async def gang_is_placed() -> bool:
        return len(await places(admin, namespace, "gang")) == 5

    await eventually(gang_is_placed)
    assert await places(admin, namespace, "gang") == told

    # A second gang does not fit any more, and it would on two more nodes.
    more = [f"--submit={file}", "--namespace=elsewhere"]
    file.write_text(file.read_text().replace(f"namespace: {namespace}", "namespace: elsewhere"))
    assert not (await whatif(gpu_cluster, *more, "--count=2"))["satisfied"]
    assert (await whatif(gpu_cluster, *more, "--count=2", "--add-nodes=4x4xT4"))["satisfied"]
    await admin.delete_collection(PODGROUPS, namespace)
