"""Gangs on a real API server: from every kind of owner, through every phase, and after kills."""

import signal
from pathlib import Path
from typing import Any

from alnair.kube.client import Client
from alnair.kube.resources import (
    EVENTS,
    PODGROUPS,
    PODS,
    Manifest,
    grouped,
)
from alnair.model import names
from scheduler_kit import (
    SHORT_LEASE,
    StartController,
    StartScheduler,
    eventually,
    pod,
)

DEPLOYMENTS = grouped("apps", "v1", "deployments", "Deployment")
STATEFUL_SETS = grouped("apps", "v1", "statefulsets", "StatefulSet")
JOBS = grouped("batch", "v1", "jobs", "Job")
OWNERS = {r.kind: r for r in (DEPLOYMENTS, STATEFUL_SETS, JOBS, PODGROUPS)}
EXAMPLE = Path(__file__).parents[3] / "examples" / "01-coscheduling"


def podgroup(namespace: str, name: str, members: int, **spec: Any) -> Manifest:
    return {
        "apiVersion": PODGROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minMember": members, **spec},
    }


def member(namespace: str, name: str, group: str) -> Manifest:
    return pod(namespace, name, labels={names.POD_GROUP_LABEL: group})


async def status(client: Client, namespace: str, name: str) -> dict[str, Any]:
    found = await client.get(PODGROUPS, name, namespace)
    return dict(found.get("status") or {})


async def in_phase(client: Client, namespace: str, name: str, phase: str) -> None:
    async def reached() -> bool:
        return (await status(client, namespace, name)).get("phase") == phase

    await eventually(reached, what=f"phase {phase} of {name}")


async def test_a_member_that_fails_fails_its_group_with_a_condition_and_one_event(
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    start_controller: StartController,
) -> None:
    start_scheduler()
    start_controller()
    await admin.create(PODGROUPS, podgroup(namespace, "g", 2))
    await in_phase(admin, namespace, "g", "Pending")
    for i in range(2):
        await admin.create(PODS, member(namespace, f"g-{i}", "g"))
    await in_phase(admin, namespace, "g", "Running")
    found = await status(admin, namespace, "g")
    assert (found["scheduled"], found["running"], found["failed"]) == (2, 2, 0)
    assert found["scheduleStartTime"]
    await admin.merge_patch(
        PODS, "g-1", {"status": {"phase": "Failed"}}, namespace, subresource="status"
    )
    await in_phase(admin, namespace, "g", "Failed")
    found = await status(admin, namespace, "g")
    failed = next(c for c in found["conditions"] if c["type"] == "Failed")
    assert (failed["status"], failed["reason"]) == ("True", "MemberFailed")
    assert "g-1" in failed["message"]
    events = [
        e
        for e in (await admin.list(EVENTS, namespace)).items
        if e["involvedObject"]["kind"] == "PodGroup" and e["type"] == "Warning"
    ]
    assert [e["reason"] for e in events] == ["MemberFailed"]


async def test_a_controller_that_is_killed_is_followed_by_one_that_writes_nothing_twice(
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    start_controller: StartController,
) -> None:
    start_scheduler()
    first = start_controller(*SHORT_LEASE)
    await admin.create(PODGROUPS, podgroup(namespace, "done", 1))
    await admin.create(PODS, member(namespace, "done-0", "done"))
    await in_phase(admin, namespace, "done", "Running")
    await admin.create(PODGROUPS, podgroup(namespace, "g", 2))
    await admin.create(PODS, member(namespace, "g-0", "g"))
    await in_phase(admin, namespace, "g", "Pending")
    version = (await admin.get(PODGROUPS, "done", namespace))["metadata"]["resourceVersion"]
    first.signal(signal.SIGKILL)
    await admin.create(PODS, member(namespace, "g-1", "g"))
    start_controller(*SHORT_LEASE)
    await in_phase(admin, namespace, "g", "Running")
    after = (await admin.get(PODGROUPS, "done", namespace))["metadata"]["resourceVersion"]
    assert after == version, "what was right already is not written again"
