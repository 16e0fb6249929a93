"""What jobs do as a whole is told while they run: stragglers, progress, idle GPUs."""

import asyncio
import time
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from alnair.history.database import opening, queries
from alnair.history.database.addresses import HistoryError
from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.objects.annotations import rfc3339
from alnair.kube.resources import EVENTS, LEASES, NAMESPACES, NODES, PODS, grouped
from alnair.model import names
from alnair.model.api_types import JobWorkload, Workload
from alnair.processes.controller.idle_evictions import IdleEvictions, IdleSettings
from kit.live.scheduler_process import (
    SHORT_LEASE,
    ControllerProcess,
    StartController,
    eventually,
    pod,
)

JOBS = grouped("batch", "v1", "jobs", "Job")
BUDGETS = grouped("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
FAST = (*SHORT_LEASE, "--history-period=0.3", "--annotate-owners=0.5")
RANKS = 4


def job(namespace: str) -> dict[str, Any]:
    spec = {"restartPolicy": "Never", "schedulerName": "nobody"}
    spec |= {"containers": [{"name": "main", "image": "pause"}]}  # type: ignore[dict-item]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": namespace},
        "spec": {
            "completions": RANKS,
            "parallelism": RANKS,
            "completionMode": "Indexed",
            "template": {"spec": spec},
        },
    }


async def annotate(admin: Client, found: dict[str, Any], workload: Workload) -> None:
    meta = found["metadata"]
    text = msgspec.json.encode(workload).decode()
    await admin.merge_patch(
        PODS,
        meta["name"],
        {"metadata": {"annotations": {names.WORKLOAD: text}}},
        meta["namespace"],
    )


def index(found: dict[str, Any]) -> int:
    return int(found["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])


async def told(admin: Client, namespace: str) -> JobWorkload | None:
    owner = await admin.get(JOBS, "train", namespace)
    text = owner["metadata"].get("annotations", {}).get(names.WORKLOAD)
    return msgspec.json.decode(text, type=JobWorkload) if text else None


def finding(history: str, namespace: str) -> dict[str, Any]:
    try:
        with opening.readable(history) as connection:
            found = queries.find(connection, namespace, "Job", "train")
    except HistoryError:
        return {}
    return found.findings.get("workload", {}) if found else {}


async def metrics(controller: ControllerProcess) -> str:
    said = "serving health at "
    url = controller.log.read_text().rpartition(said)[2].split("/healthz")[0]
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as answer:
        return await answer.text()


async def test_a_straggler_is_told_on_the_owner_by_an_event_in_metrics_and_in_the_history(
    admin: Client, namespace: str, start_controller: StartController, tmp_path: Path
) -> None:
    history = str(tmp_path / "history.db")
    controller = start_controller("--history", history, *FAST)
    await admin.create(JOBS, job(namespace))

    async def made() -> bool:
        return len((await admin.list(PODS, namespace)).items) == RANKS

    await eventually(made)
    pods = (await admin.list(PODS, namespace)).items

    async def work(*, slow: bool) -> None:
        """Let each pod say what it does, as its agent would."""
        for one in pods:
            rank = index(one)
            period = 1.6 if slow and rank == 2 else 1.0 + 0.01 * rank
            said = Workload(
                1,
                rfc3339(time.time()),
                type="training",
                period_s=period,
                phase="training",
                progress=0.25 + 0.01 * rank,
                eta_s=100.0 * period,
            )
            await annotate(admin, one, said)

    async def named() -> bool:
        await work(slow=True)
        await asyncio.sleep(0.9)
        found = await told(admin, namespace)
        if found is None or found.pods < RANKS:  # some may be read later
            return False
        return [one.rank for one in found.stragglers] == [2]

    await eventually(named, 60, "rank 2 is named on the job")
    found = await told(admin, namespace)
    assert found is not None
    assert (found.pods, found.type, found.phase, found.progress) == (
        RANKS, "training", "training", 0.25,
    )  # fmt: skip
    (straggler,) = found.stragglers
    assert straggler.slowdown == pytest.approx(1.6, rel=0.05)
    name = straggler.pod
    said: list[dict[str, Any]] = []

    async def told_everywhere() -> bool:  # each at its own pace
        events = (await admin.list(EVENTS, namespace)).items
        said[:] = [one for one in events if one["reason"] == "Straggler"]
        shown = await metrics(controller)
        kept = finding(history, namespace).get("stragglers", ())
        return (
            bool(said)
            and f'pod="{name}",rank="2"' in shown
            and "alnair_job_progress_ratio" in shown
            and [one["pod"] for one in kept] == [name]
        )

    await eventually(told_everywhere)
    assert [one["involvedObject"]["name"] for one in said] == [name]
    assert "rank 2 takes 1.5" in said[0]["message"] or "rank 2 takes 1.6" in said[0]["message"]

    # Killed: what was found is there, and who comes next does not take it back at once.
    controller.close()
    assert finding(history, namespace)["stragglers"][0]["pod"] == name
    start_controller("--history", history, *FAST)
    await asyncio.sleep(2)
    again = await told(admin, namespace)
    assert again is not None
    assert [one.pod for one in again.stragglers] == [name]

    # The pods go, and what they did stays.
    await admin.delete_collection(PODS, namespace, grace_seconds=0)
    await asyncio.sleep(1)
    last = await told(admin, namespace)
    assert last is not None
    assert last.progress == 0.25
    assert finding(history, namespace)["progress"] == 0.25


async def test_a_pod_that_does_not_use_its_gpus_is_told_and_evicted_where_its_namespace_asks(
    admin: Client, namespace: str
) -> None:
    node = (await admin.list(NODES)).items[0]["metadata"]["name"]
    since = rfc3339(time.time() - 100)
    text = f'{{"v":1,"t":"{since}","gpu":0.0,"idle_since":"{since}"}}'
    manifest = pod(namespace, "idle", labels={"app": "x"}, annotations={names.UTILIZATION: text})
    manifest["spec"]["nodeName"] = node
    await admin.create(PODS, manifest)
    await admin.merge_patch(
        NODES, node, {"metadata": {"annotations": {names.AGENT_LEASE: "alnair-agent-idle-test"}}}
    )
    selector = {"matchLabels": {"app": "x"}}
    spec = {"minAvailable": 1, "selector": selector}
    budget = {"metadata": {"name": "keep", "namespace": namespace}, "spec": spec}
    await admin.create(BUDGETS, budget)

    async def runs() -> bool:  # before it does, no budget counts
        found = await admin.get(PODS, "idle", namespace)
        return bool(found["status"]["phase"] == "Running")

    await eventually(runs)
    evictions = IdleEvictions(admin, IdleSettings(after=50, grace=0.5), every=0.2)

    async def reasons() -> set[str]:
        return {one["reason"] for one in (await admin.list(EVENTS, namespace)).items}

    def counted() -> dict[str, float]:
        (family,) = evictions.metrics()
        return {one.labels["result"]: one.value for one in family.samples}

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(evictions.follow()), group.create_task(evictions.run_writes())]
        try:
            await asyncio.sleep(1.5)
            assert "GpuIdleEviction" not in await reasons(), "nobody asked for it"
            label = {"metadata": {"labels": {names.EVICT_IDLE: "enabled"}}}
            await admin.merge_patch(NAMESPACES, namespace, label)

            async def warned() -> bool:
                return "GpuIdleEviction" in await reasons()

            await eventually(warned, what="it was warned")
            await asyncio.sleep(1.0)
            await admin.get(PODS, "idle", namespace)  # its agent is silent: nobody knows
            assert counted() == {}
            lease = {
                "metadata": {"name": "alnair-agent-idle-test", "namespace": names.NAMESPACE},
                # It is renewed no more, and is not to be over before the test.
                "spec": {"renewTime": rfc3339(time.time() + 600).replace("Z", ".000000Z")},
            }
            await admin.create(LEASES, lease)

            async def refused() -> bool:
                return counted().get("refused", 0) > 0

            await eventually(refused, what="its budget refused")
            await admin.get(PODS, "idle", namespace)
            await admin.delete(BUDGETS, "keep", namespace)

            async def gone() -> bool:
                try:
                    found = await admin.get(PODS, "idle", namespace)
                except NotFound:
                    return True
                return "deletionTimestamp" in found["metadata"]

            await eventually(gone, what="it was evicted")

            async def said() -> bool:  # once the eviction is answered, which comes after its effect
                return counted().get("evicted") == 1 and "EvictedForIdleGpus" in await reasons()

            await eventually(said)
        finally:
            for task in tasks:
                task.cancel()
            await admin.merge_patch(
                NODES, node, {"metadata": {"annotations": {names.AGENT_LEASE: None}}}
            )
