"""Who must go on a real API server: pods that borrow, and not a gang of their own namespace."""

import contextlib
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from alnair.kube.client import Client
from alnair.kube.errors import AlreadyExists
from alnair.kube.resources import (
    ELASTIC_QUOTAS,
    NAMESPACES,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    SERVICE_ACCOUNTS,
)
from alnair.model import names
from kit.live.scheduler_process import StartScheduler, bound, eventually, pod

#: Nodes of the cluster, and GPUs of each (`conftest`).
NODE_COUNT, GPUS = 6, 4
#: Beside a gang on two nodes, one-GPU pods fill the others; so many of them are borrowed.
BORROWED, FILLING = 8, (NODE_COUNT - 2) * GPUS


@pytest.fixture
async def high(admin: Client) -> AsyncIterator[str]:
    """A priority class above the default."""
    name = f"high-{uuid.uuid4().hex[:8]}"
    await admin.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": 1000})
    yield name
    await admin.delete(PRIORITY_CLASSES, name)


@pytest.fixture
async def borrower(admin: Client) -> AsyncIterator[str]:
    """A second namespace, whose pods are gone before the next test."""
    name = f"borrower-{uuid.uuid4().hex[:8]}"
    await admin.create(NAMESPACES, {"metadata": {"name": name}})
    with contextlib.suppress(AlreadyExists):  # pods are refused until somebody has made it
        await admin.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, name)
    yield name
    await admin.delete_collection(PODS, name, grace_seconds=0)
    await admin.delete(NAMESPACES, name)


async def guarantee(admin: Client, namespace: str, gpus: int) -> None:
    quota = {
        "apiVersion": ELASTIC_QUOTAS.api_version,
        "kind": ELASTIC_QUOTAS.kind,
        "metadata": {"name": "team", "namespace": namespace},
        "spec": {"min": {names.GPU: gpus}},
    }
    await admin.create(ELASTIC_QUOTAS, quota)


async def fill(admin: Client, namespace: str, borrower: str) -> None:
    """Let a gang take two nodes and one-GPU pods of another namespace the rest."""
    group: dict[str, Any] = {
        "apiVersion": PODGROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": namespace},
        "spec": {"minMember": 2},
    }
    await admin.create(PODGROUPS, group)
    for number in range(2):
        labels = {names.POD_GROUP_LABEL: "train"}
        limits = {names.GPU: str(GPUS)}
        await admin.create(PODS, pod(namespace, f"train-{number}", limits=limits, labels=labels))

    async def gang_is_there() -> bool:
        return len(await bound(admin, namespace)) == 2

    await eventually(gang_is_there, what="the gang runs")
    for number in range(FILLING):
        await admin.create(PODS, pod(borrower, f"one-{number}", limits={names.GPU: "1"}))

    async def full() -> bool:
        return len(await bound(admin, borrower)) == FILLING

    await eventually(full, what="the cluster is full")


async def test_four_borrowed_pods_go_and_the_gang_of_the_namespace_stays(
    admin: Client, namespace: str, borrower: str, start_scheduler: StartScheduler, high: str
) -> None:
    start_scheduler()
    await guarantee(admin, borrower, FILLING - BORROWED)
    await guarantee(admin, namespace, 4 * GPUS)
    await fill(admin, namespace, borrower)
    gang = await bound(admin, namespace)
    manifest = pod(namespace, "high", limits={names.GPU: str(GPUS)})
    manifest["spec"]["priorityClassName"] = high
    await admin.create(PODS, manifest)

    async def landed() -> bool:
        return "high" in await bound(admin, namespace)

    await eventually(landed, what="the pod takes the place of others")
    after = await bound(admin, namespace)
    assert {name: after.get(name) for name in gang} == gang
    assert len(await bound(admin, borrower)) == FILLING - GPUS
