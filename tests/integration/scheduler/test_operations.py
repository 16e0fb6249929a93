"""The live process as an operator meets it: figures, dry-run, snapshots, hand-over."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from alnair.kube.client import Client
from alnair.kube.resources import EVENTS, LEASES, NODES, PODGROUPS, PODS
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from kit.live.scheduler_process import (
    SchedulerProcess,
    StartScheduler,
    bound,
    eventually,
    holder,
    pod,
)

_SERVING = re.compile(r"serving health at (\S+?)/healthz")


async def get(url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return await answer.text() if answer.status == 200 else ""


def address(process: SchedulerProcess) -> str:
    """Where a process serves, as its log says; empty while it does not yet."""
    found = _SERVING.search(process.log.read_text())
    return found[1] if found else ""


def logged(process: SchedulerProcess) -> list[str]:
    """The lines of its log."""
    return process.log.read_text().splitlines()


def complaints(metrics: str) -> str:
    """What promtool has against metrics; empty where there is no promtool."""
    if not shutil.which("promtool"):
        return ""
    command = ["promtool", "check", "metrics"]
    check = subprocess.run(command, input=metrics, text=True, capture_output=True, check=False)
    return check.stdout + check.stderr


async def test_the_figures_of_a_live_scheduler_are_sound(
    start_scheduler: StartScheduler, admin: Client, namespace: str
) -> None:
    scheduler = start_scheduler()
    for i in range(3):
        await admin.create(PODS, pod(namespace, f"p{i}"))
    await admin.create(PODS, pod(namespace, "large", cpu="9999"))

    async def all_bound() -> bool:
        return len(await bound(admin, namespace)) == 3

    await eventually(all_bound)
    expected = (
        'scheduler_pending_pods{queue="unschedulable"} 1.0',
        'scheduler_schedule_attempts_total{profile="alnair-scheduler",result="scheduled"} 3.0',
        'extension_point="Bind",profile="alnair-scheduler",status="Success"} 3.0',
        'leader_election_master_status{name="alnair-scheduler"} 1.0',
    )

    async def all_is_counted() -> bool:  # a Binding once its answer is here, after its effect
        text = await get(f"{address(scheduler)}/metrics")
        return all(one in text for one in expected)

    await eventually(all_is_counted, what=f"all of {expected}")
    assert complaints(await get(f"{address(scheduler)}/metrics")) == ""


async def versions(client: Client, namespace: str) -> dict[str, str]:
    """The resourceVersion of everything that a scheduler could have written."""
    found = {}
    for resource, where in (
        (NODES, None),
        (PODS, namespace),
        (PODGROUPS, namespace),
        (LEASES, names.NAMESPACE),
        (EVENTS, namespace),
    ):
        for item in (await client.list(resource, where)).items:
            meta = item["metadata"]
            found[f"{resource.plural}/{meta['name']}"] = meta["resourceVersion"]
    return found


async def test_a_dry_run_decides_and_writes_nothing(
    start_scheduler: StartScheduler, admin: Client, namespace: str
) -> None:
    group = {
        "apiVersion": PODGROUPS.api_version,
        "kind": PODGROUPS.kind,
        "metadata": {"name": "g", "namespace": namespace},
        "spec": {"minMember": 2},
    }
    await admin.create(PODGROUPS, group)
    labels = {names.POD_GROUP_LABEL: "g"}
    for name in ("g-0", "g-1"):
        await admin.create(PODS, pod(namespace, name, labels=labels))
    await admin.create(PODS, pod(namespace, "single", limits={names.GPU: 1}))
    await admin.create(PODS, pod(namespace, "large", cpu="9999"))
    before = await versions(admin, namespace)
    scheduler = start_scheduler("--dry-run", "--log-format=json")

    async def has_decided() -> bool:
        if not (url := address(scheduler)):
            return False
        text = await get(f"{url}/debug/decisions?last=100")
        decisions = json.loads(text or "[]")
        done = {(d["action"], d["object"].partition("/")[2]) for d in decisions}
        wanted = {("Bind", "g-0"), ("Bind", "g-1"), ("Bind", "single"), ("WritePlan", "g")}
        return {*wanted, ("FailedScheduling", "large")} <= done

    await eventually(has_decided)
    scheduler.signal(signal.SIGTERM)
    assert scheduler.process.returncode == 0
    assert await versions(admin, namespace) == before
    lines = [json.loads(line) for line in logged(scheduler)]
    said = [line["msg"] for line in lines]
    assert [m for m in said if m.startswith(f"would bind {namespace}/single to ")]
    assert all(set(line) <= {"ts", "level", "logger", "msg", "error"} for line in lines)


async def test_a_snapshot_of_the_live_scheduler_replays(
    start_scheduler: StartScheduler,
    admin: Client,
    namespace: str,
    gpu_cluster: LocalCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start_scheduler()
    await admin.create(PODS, pod(namespace, "large", cpu="9999"))

    async def is_refused() -> bool:
        status = (await admin.get(PODS, "large", namespace)).get("status", {})
        return bool(status.get("conditions"))

    await eventually(is_refused)
    file = tmp_path / "snapshot.json.gz"
    monkeypatch.setenv("ALNAIR_STATE", str(gpu_cluster.layout.root))
    saved = alnair("snapshot", str(file), "--name", gpu_cluster.name)
    assert saved.startswith(f"{file}: 6 nodes, ")
    decided = [alnair("replay", str(file), "--pod", f"{namespace}/large") for _ in range(2)]
    assert decided[0] == decided[1]
    assert decided[0].startswith(f"{namespace}/large: 0/6 nodes are available: 6 Insufficient cpu")


def alnair(*arguments: str) -> str:
    run = subprocess.run(
        [sys.executable, "-m", "alnair", "scheduler", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


async def test_the_lease_has_the_name_that_it_is_given_and_is_released_at_the_end(
    start_scheduler: StartScheduler, admin: Client
) -> None:
    scheduler = start_scheduler("--lease-name=ours")

    async def leads() -> bool:
        found = {
            lease["metadata"]["name"] for lease in (await admin.list(LEASES, names.NAMESPACE)).items
        }
        return "ours" in found

    await eventually(leads)
    assert await holder(admin) == ""
    scheduler.signal(signal.SIGTERM)
    lease = await admin.get(LEASES, "ours", names.NAMESPACE)
    assert not lease["spec"].get("holderIdentity")
