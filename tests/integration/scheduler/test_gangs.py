"""Gangs on a real API server: from every kind of owner, through every phase, and after kills."""

import contextlib
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from alnair.kube.client import Client
from alnair.kube.crds.manifests import crd
from alnair.kube.crds.our_crds import LEGACY_POD_GROUP
from alnair.kube.errors import NotFound
from alnair.kube.resources import (
    CRDS,
    EVENTS,
    LEGACY_PODGROUPS,
    NODES,
    PODGROUPS,
    PODS,
    Manifest,
    Resource,
    grouped,
)
from alnair.model import names
from kit.live.scheduler_process import (
    SHORT_LEASE,
    StartController,
    StartScheduler,
    bound,
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

    async def warnings() -> list[str]:
        events = (await admin.list(EVENTS, namespace, field_selector="type=Warning")).items
        return [e["reason"] for e in events if e["involvedObject"]["kind"] == "PodGroup"]

    async def warned() -> bool:  # a moment after the status
        return bool(await warnings())

    await eventually(warned, what="an event of the failure")
    assert await warnings() == ["MemberFailed"]


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


def template(group: str, **spec: Any) -> Manifest:
    """A pod template whose pods belong to the group and to whatever selects them by it."""
    made = pod("", "", labels={names.POD_GROUP_LABEL: group})
    return {"metadata": {"labels": made["metadata"]["labels"]}, "spec": {**made["spec"], **spec}}


def owner(kind: str, name: str, count: int) -> Manifest:
    """Something that makes so many pods of the group of its name."""
    selector = {"matchLabels": {names.POD_GROUP_LABEL: name}}
    long_run = {"ai.centaurus.io/simulated-duration": "600s"}
    resource = OWNERS[kind]
    spec: Manifest
    if kind == "Job":
        forever = template(name, restartPolicy="Never")
        forever["metadata"]["annotations"] = long_run
        spec = {"parallelism": count, "completions": count, "template": forever}
    else:
        spec = {"replicas": count, "selector": selector, "template": template(name)}
        # One pod after the other, each when the last one is ready, is a gang that never starts.
        spec |= {"podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}
    return {
        "apiVersion": resource.api_version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def resized(kind: str, count: int) -> Manifest:
    if kind == "Job":
        return {"spec": {"parallelism": count}}
    return {"spec": {"replicas": count}}


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment", "Job"])
async def test_pods_of_every_kind_of_owner_start_together(
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    start_controller: StartController,
    kind: str,
) -> None:
    start_scheduler()
    start_controller()
    await admin.create(PODGROUPS, podgroup(namespace, "g", 3))
    made = owner(kind, "g", 3)
    # A Job that may run two at a time has a third to come, which it never makes.
    made["spec"] |= resized(kind, 2)["spec"]
    await admin.create(OWNERS[kind], made, namespace)
    await told(admin, namespace, "needs 3 pods and has 2")
    assert await bound(admin, namespace) == {}
    await admin.merge_patch(OWNERS[kind], "g", resized(kind, 3), namespace)
    await in_phase(admin, namespace, "g", "Running")
    assert len(await bound(admin, namespace)) == 3
    owners = (await status(admin, namespace, "g"))["occupiedBy"]
    assert owners.startswith(f"{namespace}/g")


async def told(client: Client, namespace: str, text: str) -> None:
    """Wait until the pods' owner is told why they wait."""

    async def said() -> bool:
        found = (await client.list(PODS, namespace)).items
        return any(
            text in condition.get("message", "")
            for one in found
            for condition in one["status"].get("conditions", ())
        )

    await eventually(said, what=text)


async def test_the_example_waits_with_two_pods_and_runs_with_three(
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    start_controller: StartController,
) -> None:
    start_scheduler()
    start_controller()
    for file in sorted(EXAMPLE.glob("*.yaml")):
        document = yaml.safe_load(file.read_text())
        await admin.create(OWNERS[document["kind"]], document, namespace)
    await told(admin, namespace, "gang " + namespace + "/nginx needs 3 pods and has 2")
    await in_phase(admin, namespace, "nginx", "Pending")
    assert await bound(admin, namespace) == {}

    async def is_told_of_both() -> bool:  # the controller may hear of its pods after the scheduler
        (scheduled,) = (await status(admin, namespace, "nginx"))["conditions"]
        assert scheduled["reason"] == "NotEnoughPods"
        return bool(scheduled["message"] == "the group needs 3 pods and has 2")

    await eventually(is_told_of_both)
    await admin.merge_patch(DEPLOYMENTS, "nginx", {"spec": {"replicas": 3}}, namespace)
    await in_phase(admin, namespace, "nginx", "Running")
    assert len(await bound(admin, namespace)) == 3


async def test_a_job_whose_pods_end_finishes_its_group(
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    start_controller: StartController,
) -> None:
    start_scheduler()
    start_controller()
    await admin.create(PODGROUPS, podgroup(namespace, "g", 2))
    made = owner("Job", "g", 2)
    del made["spec"]["template"]["metadata"]["annotations"]
    await admin.create(JOBS, made, namespace)
    await in_phase(admin, namespace, "g", "Finished")
    assert (await status(admin, namespace, "g"))["succeeded"] == 2


async def test_a_group_of_the_legacy_api_has_its_status_too(
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    start_controller: StartController,
) -> None:
    legacy: Resource[Manifest] = LEGACY_PODGROUPS
    await admin.apply(CRDS, crd(LEGACY_POD_GROUP), field_manager="test")
    group = {**podgroup(namespace, "g", 2), "apiVersion": legacy.api_version}

    async def created() -> bool:
        with contextlib.suppress(NotFound):
            await admin.create(legacy, group)
            return True
        return False

    await eventually(created, what="the legacy API")
    start_scheduler()
    start_controller()
    for i in range(2):
        labels = {names.POD_GROUP_LABEL_LEGACY: "g"}
        await admin.create(PODS, pod(namespace, f"g-{i}", labels=labels))

    async def running() -> bool:
        found = await admin.get(legacy, "g", namespace)
        return (found.get("status") or {}).get("phase") == "Running"

    await eventually(running)


async def test_a_gang_is_kept_in_one_rack_by_its_annotation(
    admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    nodes = sorted(node["metadata"]["name"] for node in (await admin.list(NODES)).items)
    rack_of = {name: f"r{i % 2}" for i, name in enumerate(nodes)}
    label = names.TOPOLOGY_PREFIX + "rack"
    for name, rack in rack_of.items():
        await admin.merge_patch(NODES, name, {"metadata": {"labels": {label: rack}}})
    group = podgroup(namespace, "g", 8)
    group["metadata"]["annotations"] = {names.TOPOLOGY_REQUIRED: "rack"}
    await admin.create(PODGROUPS, group)
    for i in range(8):
        one = pod(namespace, f"g-{i}", limits={names.GPU: "1"})
        one["metadata"]["labels"] = {names.POD_GROUP_LABEL: "g"}
        await admin.create(PODS, one)

    async def all_bound() -> bool:
        return len(await bound(admin, namespace)) == 8

    await eventually(all_bound)
    racks = {rack_of[node] for node in (await bound(admin, namespace)).values()}
    assert len(racks) == 1
    for name in rack_of:
        await admin.merge_patch(NODES, name, {"metadata": {"labels": {label: None}}})
