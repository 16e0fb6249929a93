"""`alnair check` against a real API server, with good and bad objects in it."""

import asyncio
import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from alnair.checker.over_time.live_check import Watching
from alnair.kube.client import Client
from alnair.kube.objects.simulated_nodes import gpu_uuid
from alnair.kube.resources import PODGROUPS, PODS
from alnair.live import checking
from alnair.local.controlplane import LocalCluster
from kit.command import COMMAND, alnair, last_json
from kit.live.scheduler_process import eventually

NODE, OTHER = "t4x2-0000", "t4x2-0001"
MEMORY, COMPUTE, WHOLE = "alnair/vgpu-memory", "alnair/vgpu-compute", "nvidia.com/gpu"


async def bind(
    client: Client,
    namespace: str,
    name: str,
    *,
    node: str = NODE,
    limits: dict[str, str] | None = None,
    part: dict[str, Any] | None = None,
    **more: Any,
) -> None:
    """Create a pod of ours and bind it, with a part of the node's first GPU."""
    spec = {
        "schedulerName": more.get("scheduler", "alnair-scheduler"),
        "containers": [{"name": "main", "image": "pause", "resources": {"limits": limits or {}}}],
        "terminationGracePeriodSeconds": 0,
    }
    made = await client.create(
        PODS,
        {
            "metadata": {"name": name, "labels": more.get("labels", {})},
            "spec": spec | more.get("spec", {}),
        },
        namespace,
    )
    if not node:
        return
    annotations = {}
    if part is not None:
        given = {"uuid": gpu_uuid(node, 0), "index": 0, "whole": False} | part
        document = {"v": 1, "t": "2026-01-01T00:00:00Z", "containers": {"main": [given]}}
        annotations["ai.centaurus.io/gpu-assignment"] = json.dumps(document)
    await client.bind(namespace, name, made["metadata"]["uid"], node, annotations)


def check(cluster: LocalCluster, namespace: str, *more: object) -> subprocess.CompletedProcess[str]:
    where = ("--kubeconfig", cluster.kubeconfig(), "--namespace", namespace)
    return alnair("check", *where, *more, seconds=60)


async def test_what_is_placed_well_is_found_well(
    objects_cluster: LocalCluster, admin: Client, namespace: str
) -> None:
    limits = {"cpu": "1", MEMORY: "15000", COMPUTE: "60"}
    await bind(admin, namespace, "a", limits=limits, part={"memory_mib": 15000, "compute": 60})
    await bind(admin, namespace, "b", node="", limits={"cpu": "500"})
    done = await asyncio.to_thread(check, objects_cluster, namespace, "--json", "--expect-pods", 2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert last_json(done) == {"ok": True, "nodes": 2, "pods": 2, "bound": 1, "violations": []}


async def test_a_misspelt_namespace_is_told_with_the_one_that_is_meant(
    objects_cluster: LocalCluster, namespace: str
) -> None:
    done = await asyncio.to_thread(check, objects_cluster, namespace + "x")
    assert done.returncode == 2, done.stdout + done.stderr
    assert f"there is no namespace {namespace}x: did you mean {namespace}" in " ".join(
        word for word in done.stderr.split() if word != "│"
    )
    lost = await asyncio.to_thread(check, objects_cluster, namespace + "x", "--expect-pods", 1)
    assert lost.returncode == 1, lost.stdout + lost.stderr
    assert "pods-expected" in lost.stdout


@pytest.mark.parametrize("command", ["jobs", "top"])
async def test_no_job_and_no_pod_is_looked_for_in_a_namespace_that_there_is_not(
    objects_cluster: LocalCluster, namespace: str, command: str
) -> None:
    where = ("--kubeconfig", objects_cluster.kubeconfig(), "--namespace", namespace + "x")
    done = await asyncio.to_thread(alnair, command, *where, "--json", seconds=60)
    assert done.returncode == 2, done.stdout + done.stderr
    assert f"there is no namespace {namespace}x: did you mean {namespace}" in " ".join(
        word for word in done.stderr.split() if word != "│"
    )


async def test_every_broken_promise_is_told_with_its_place(
    objects_cluster: LocalCluster, admin: Client, namespace: str
) -> None:
    half = {MEMORY: "10000", COMPUTE: "60"}
    part = {"memory_mib": 10000, "compute": 60}
    await bind(admin, namespace, "a", limits=half, part=part)
    await bind(admin, namespace, "b", limits=half, part=part)
    await bind(admin, namespace, "c", node=OTHER, limits={"cpu": "20"})
    await bind(admin, namespace, "d", node=OTHER, limits={"cpu": "20"})
    await bind(admin, namespace, "e", node=OTHER, limits={WHOLE: "1"})
    await bind(admin, namespace, "f", spec={"nodeSelector": {"nvidia.com/gpu.product": "A100"}})
    group = {"apiVersion": PODGROUPS.api_version, "kind": "PodGroup", "metadata": {"name": "g"}}
    await admin.create(PODGROUPS, group | {"spec": {"minMember": 2}}, namespace)
    label = {"scheduling.x-k8s.io/pod-group": "g"}
    await bind(admin, namespace, "g1", labels=label)
    await bind(admin, namespace, "g2", node="", labels=label)
    # Both wait for a second look, so at the same time.
    done, told = await asyncio.gather(
        asyncio.to_thread(check, objects_cluster, namespace, "--json"),
        asyncio.to_thread(check, objects_cluster, namespace),
    )
    assert done.returncode == 1
    report = last_json(done)
    assert report["ok"] is False
    found = {v["rule"]: v for v in report["violations"]}
    assert set(found) == {
        "gpu-memory",
        "gpu-compute",
        "gpu-compute-hard",
        "node-capacity",
        "assignment-present",
        "node-selector",
        "gang-whole",
    }
    assert found["gpu-memory"] == {
        "rule": "gpu-memory",
        "object": MEMORY,
        "node": NODE,
        "gpu": gpu_uuid(NODE, 0),
        "used": 20000,
        "limit": 15360,
    }
    assert (found["node-capacity"]["used"], found["node-capacity"]["limit"]) == (40, 24)
    assert told.returncode == 1
    assert f"gpu-memory: {MEMORY} on node {NODE}, GPU {gpu_uuid(NODE, 0)}: " in told.stdout
    assert told.stdout.endswith("7 violations\n")


async def watches_of_pods(client: Client) -> int:
    """How many clients watch all pods, the API server itself included."""
    for line in (await client.raw("GET", "/metrics")).decode().splitlines():
        if line.startswith("apiserver_longrunning_requests{") and all(
            label in line for label in ('resource="pods"', 'scope="cluster"', 'verb="WATCH"')
        ):
            return int(float(line.rpartition(" ")[2]))
    return 0


async def test_a_watch_tells_what_was_wrong_for_a_moment_and_survives_the_server(
    objects_cluster: LocalCluster, admin: Client, namespace: str
) -> None:
    where = ("--kubeconfig", str(objects_cluster.kubeconfig()), "--namespace", namespace)
    before = await watches_of_pods(admin)

    async def watching() -> bool:
        return await watches_of_pods(admin) > before

    process = await asyncio.create_subprocess_exec(
        *COMMAND, "check", "--watch", *where, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        await eventually(watching, what="the watch begins")
        await bind(admin, namespace, "a", limits={"cpu": "20"})
        await objects_cluster.restart("kube-apiserver", signal.SIGKILL)
        await eventually(watching, what="the watch goes on")
        await bind(admin, namespace, "b", limits={"cpu": "20"})
        await admin.delete(PODS, "b", namespace, grace_seconds=0)
        # The deletion itself is not told, but what comes after it in the same watch is.
        await bind(admin, namespace, "c", node=OTHER, limits={"cpu": "30"})
        told = b"".join([await asyncio.wait_for(process.stdout.readline(), 30) for _ in "bc"])
        process.send_signal(signal.SIGINT)
        output, _ = await asyncio.wait_for(process.communicate(), 20)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 1, output
    lines = (told + output).decode().splitlines()
    assert lines[0] == f"node-capacity: cpu on node {NODE}: found 40, allowed 24"
    assert lines[1] == f"node-capacity: cpu on node {OTHER}: found 30, allowed 24"
    assert lines[-1].endswith("2 nodes, 2 pods, 2 of them bound: 2 violations")


async def test_a_watch_sees_how_long_a_store_that_stands_still_holds_up_requests(
    objects_cluster: LocalCluster, admin: Client
) -> None:
    etcd = objects_cluster.running()["etcd"].process
    watching = Watching()
    end = asyncio.Event()
    work = asyncio.create_task(checking.watch(admin, watching, end.wait, print))

    def lasted() -> float:
        now = time.monotonic()
        return watching.requests.longest(now, now)

    async def held_up() -> bool:
        return lasted() > 1

    async def answered() -> bool:
        return 0 < lasted() < 1

    await eventually(answered, what="a request is timed")
    etcd.suspend()
    try:
        await eventually(held_up, what="it is held up")
    finally:
        etcd.resume()
    await eventually(answered, what="requests are quick again")
    end.set()
    await work
    assert watching.violations == []


def test_a_watch_that_ends_before_all_is_read_proves_nothing(
    objects_cluster: LocalCluster,
) -> None:
    done = alnair("check", "--watch", "--for", 0, "--kubeconfig", objects_cluster.kubeconfig())
    assert done.returncode == 3
    assert "the cluster cannot be read: the watch ended before" in done.stderr


def test_a_cluster_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    done = alnair("check", "--kubeconfig", tmp_path / "none")
    assert done.returncode == 3
    assert "cannot be read" in done.stderr
    assert str(tmp_path / "none") in done.stderr


@pytest.mark.parametrize("how", [(), ("--watch",)])
def test_a_server_that_is_not_there_is_told(
    tmp_path: Path, objects_cluster: LocalCluster, how: tuple[str, ...]
) -> None:
    import yaml

    text = yaml.safe_load(objects_cluster.kubeconfig().read_text())
    text["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "config").write_text(yaml.safe_dump(text))
    done = alnair("check", *how, "--kubeconfig", tmp_path / "config")
    assert done.returncode == 3
    assert "127.0.0.1:1" in done.stderr


@pytest.mark.parametrize("wrong", [("--for", "3"), ("--expect-pods", "-1"), ("--nope",)])
def test_wrong_usage_ends_with_2(wrong: tuple[str, ...]) -> None:
    assert alnair("check", *wrong).returncode == 2
