"""`alnair report scheduling` against a real API server: what it says is what was done."""

import asyncio
import datetime as dt
import json
import shlex
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from alnair.history.database import facts, opening
from alnair.history.database.addresses import HistoryError
from alnair.kube.client import STRATEGIC_MERGE, Client
from alnair.kube.objects.simulated_nodes import gpu_uuid
from alnair.kube.resources import PODGROUPS, PODS, grouped
from alnair.live.recording import known_from_database
from alnair.local.controlplane import LocalCluster
from kit.command import COMMAND, alnair, last_json
from kit.job_history import job_row, life, opened, pod_row, put
from kit.live.scheduler_process import eventually

NODE, OTHER = "t4x2-0000", "t4x2-0001"


async def create(client: Client, namespace: str, name: str, **more: Any) -> str:
    """Create a pod with one GPU; return its uid."""
    limits = {"nvidia.com/gpu": "1"}
    body = {
        "metadata": {"name": name, "labels": more.get("labels", {})},
        "spec": {
            "schedulerName": "alnair-scheduler",
            "containers": [{"name": "main", "image": "pause", "resources": {"limits": limits}}],
            "terminationGracePeriodSeconds": 0,
        },
    }
    made = await client.create(PODS, body, namespace)
    return str(made["metadata"]["uid"])


async def bind(
    client: Client, namespace: str, name: str, gpu: int, node: str = NODE, **more: Any
) -> None:
    """Create a pod and bind it to a GPU of a node."""
    uid = await create(client, namespace, name, **more)
    part = {"uuid": gpu_uuid(node, gpu), "index": gpu, "memory_mib": 15360, "compute": 100}
    document = {
        "v": 1,
        "t": "2026-01-01T00:00:00Z",
        "containers": {"main": [part | {"whole": True}]},
    }
    annotations = {"ai.centaurus.io/gpu-assignment": json.dumps(document)}
    await client.bind(namespace, name, uid, node, annotations)


async def finish(client: Client, namespace: str, name: str) -> None:
    """Have a pod completed, as its kubelet would say it."""
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ended = {"exitCode": 0, "startedAt": now, "finishedAt": now}
    container = {"name": "main", "image": "pause", "imageID": "", "ready": False, "restartCount": 0}
    status = {
        "phase": "Succeeded",
        "containerStatuses": [container | {"state": {"terminated": ended}}],
    }
    await client.merge_patch(PODS, name, {"status": status}, namespace, subresource="status")


def report(cluster: LocalCluster, *more: object) -> subprocess.CompletedProcess[str]:
    return alnair("report", "scheduling", "--kubeconfig", cluster.kubeconfig(), *more)


async def test_one_look_tells_what_became_of_the_pods_that_are_there(
    objects_cluster: LocalCluster, admin: Client, namespace: str, tmp_path: Path
) -> None:
    label = {"scheduling.x-k8s.io/pod-group": "g"}
    group = {"apiVersion": PODGROUPS.api_version, "kind": "PodGroup", "metadata": {"name": "g"}}
    await admin.create(PODGROUPS, group | {"spec": {"minMember": 2}}, namespace)
    await bind(admin, namespace, "g0", 0, labels=label)
    await bind(admin, namespace, "g1", 1, labels=label)
    await bind(admin, namespace, "done", 0, OTHER)
    await finish(admin, namespace, "done")
    await create(admin, namespace, "waits")
    folder = tmp_path / "report"
    more = ("--namespace", namespace, "--json", "--report", folder)
    done = await asyncio.to_thread(report, objects_cluster, *more)
    assert done.returncode == 0, done.stderr
    found = last_json(done)["runs"]["cluster"]
    assert found["jobs"] == {"total": 3, "finished": 1, "left": 0, "running": 1, "waiting": 1}
    assert found["pods"]["total"] == 4
    assert found["gangs"]["whole"] == 1
    assert found["gangs"]["partial_gpu_hours"] < 0.01
    assert found["wait"]["all"]["open"] == 1
    assert list(found["fairness"]["users"]) == [namespace]
    assert {path.name for path in folder.iterdir()} >= {"index.html", "jobs.csv", "gpu.svg"}


@asynccontextmanager
async def recording(cluster: LocalCluster, path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """One that has read all there is; it is killed if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *(*COMMAND, "report", "scheduling", "--record", str(path)),
        *("--kubeconfig", str(cluster.kubeconfig())),
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        told = await asyncio.wait_for(process.stderr.readline(), 60)
        assert told.startswith(b"recording 2 nodes"), told
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_history_kept_from_outside_knows_what_is_gone_and_goes_on_after_a_kill(
    objects_cluster: LocalCluster, admin: Client, namespace: str, tmp_path: Path
) -> None:
    path = tmp_path / "record.db"

    def known(name: str, field: str) -> Any:
        try:
            pods = known_from_database.load(str(path)).pods.values()
        except HistoryError:
            return None
        return next((getattr(p, field) for p in pods if p.record.name == name), None)

    async def has(name: str, field: str) -> bool:
        return known(name, field) is not None

    group = {"apiVersion": PODGROUPS.api_version, "kind": "PodGroup", "metadata": {"name": "g"}}
    await admin.create(PODGROUPS, group | {"spec": {"minMember": 3}}, namespace)
    async with recording(objects_cluster, path) as process:
        await bind(admin, namespace, "deleted", 0)
        await eventually(lambda: has("deleted", "bound"))
        await admin.delete(PODS, "deleted", namespace, grace_seconds=0)
        await eventually(lambda: has("deleted", "gone"))
        await bind(admin, namespace, "between", 0)
        await bind(admin, namespace, "stays", 1, labels={"scheduling.x-k8s.io/pod-group": "g"})
        await eventually(lambda: has("stays", "bound"))
        process.send_signal(signal.SIGKILL)
        await process.wait()
    last = known_from_database.load(str(path)).last
    await admin.delete(PODS, "between", namespace, grace_seconds=0)
    async with recording(objects_cluster, path) as process:
        await eventually(lambda: has("between", "gone"))
        await finish(admin, namespace, "stays")
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), 20) == 0
    assert known("between", "gone") == pytest.approx(last)
    found = known_from_database.load(str(path))
    assert found.groups == {(namespace, "g"): 3}
    done = await asyncio.to_thread(
        alnair, "report", "scheduling", "--history", path, "--namespace", namespace, "--json"
    )
    assert done.returncode == 0, done.stderr
    figures = last_json(done)["runs"]["record"]
    assert figures["jobs"]["total"] == 3
    assert (figures["jobs"]["left"], figures["nodes"]) == (2, 2)


async def test_a_history_of_another_cluster_is_not_gone_on_with(
    objects_cluster: LocalCluster, tmp_path: Path
) -> None:
    path = tmp_path / "record.db"
    with opening.open_history(str(path), writes=True).begin() as connection:
        facts.claim(connection, "another")
    done = await asyncio.to_thread(report, objects_cluster, "--record", path, "--for", 5)
    assert done.returncode == 2
    assert "history of another cluster" in done.stderr
    with opening.readable(str(path)) as connection:
        assert facts.looked(connection) is None


async def test_the_patch_of_a_report_gives_the_next_pods_of_a_deployment_a_slice(
    admin: Client, namespace: str, tmp_path: Path
) -> None:
    deployments = grouped("apps", "v1", "deployments", "Deployment")
    limits = {"nvidia.com/gpu": "1", "cpu": "2"}
    main = {"name": "main", "image": "pause", "resources": {"limits": limits}}
    template = {
        "metadata": {"labels": {"app": "serve"}},
        "spec": {"containers": [main, {"name": "side", "image": "pause"}]},
    }
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "serve"},
        "spec": {"selector": {"matchLabels": {"app": "serve"}}, "template": template},
    }
    await admin.create(deployments, body, namespace)
    ran = {"started": 0.0, "ended": 36000.0, "outcome": "completed"}
    put(
        opened(tmp_path),
        jobs=[job_row(name="serve", namespace=namespace, api_group="apps", kind="Deployment")],
        pods=[pod_row(namespace=namespace, **ran)],
        usages=[life(util=20.0, started=0.0, ended=36000.0)],
    )
    path = tmp_path / "history.db"
    done = await asyncio.to_thread(alnair, "report", "efficiency", "--history", path, "--json")
    assert done.returncode == 0, done.stderr
    command = shlex.split(last_json(done)["jobs"][0]["advice"]["apply"])
    assert command[:7] == ["kubectl", "patch", "deployment", "serve", "-n", namespace, "-p"]
    where = f"/apis/apps/v1/namespaces/{namespace}/deployments/serve"
    # As kubectl patches by default.
    await admin.raw("PATCH", where, body=command[7].encode(), content_type=STRATEGIC_MERGE)
    found = await admin.get(deployments, "serve", namespace)
    first, second = found["spec"]["template"]["spec"]["containers"]
    wanted = {"alnair/vgpu-memory": "2560", "alnair/vgpu-compute": "40"}
    assert first["resources"]["limits"] == {**wanted, "cpu": "2"}
    assert first["resources"]["requests"].items() >= wanted.items()
    assert "nvidia.com/gpu" not in first["resources"]["requests"]
    assert second["name"] == "side"
