"""Training jobs that cannot run: each comes to rest in a state that says why and what to change."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from alnair.kube.client import Client
from alnair.kube.crds.elastic_crds import TRAINING_JOBS
from alnair.kube.errors import NotFound
from alnair.kube.resources import (
    EVENTS,
    NAMESPACES,
    SERVICES,
    STATEFUL_SETS,
    Manifest,
    core,
)
from kit import training_jobs as jobs
from kit.live.scheduler_process import StartController, StartScheduler, eventually

KINDS: Final = {one.kind: one.resource() for one in TRAINING_JOBS}
RESOURCE_QUOTAS: Final = core("resourcequotas", "ResourceQuota")
LASTS: Final = {"annotations": {"ai.centaurus.io/simulated-duration": "3600s"}}
VOLUME: Final = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "absent"}}]}
TAKEN: Final = {
    "metadata": {"name": "horovodjob-taken"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
}

#: What is wrong, the job, the condition that is false for it, its reason, and what it names.
TROUBLES: Final[list[tuple[Manifest, str, str, str]]] = [
    (
        jobs.torch("account", serviceAccountName="absent"),
        "Scheduled",
        "ServiceAccountMissing",
        "spec.workersSpec.serviceAccountName",
    ),
    (
        jobs.changed(jobs.fixed("launcher"), "spec.launcherSpec.serviceAccountName", "absent"),
        "Running",
        "ServiceAccountMissing",
        "spec.launcherSpec.serviceAccountName",
    ),
    (
        jobs.changed(jobs.elastic("class"), "spec.priorityClassName", "absent"),
        "Scheduled",
        "PriorityClassMissing",
        "spec.priorityClassName",
    ),
    (jobs.fixed("taken"), "Created", "NameTaken", "Service horovodjob-taken"),
    (
        jobs.elastic("type", gpuTypes=["H100"]),
        "Scheduled",
        "FitsNowhere",
        "no GPU of an accepted model",
    ),
    (
        jobs.torch("large", gpusPerWorker=9),
        "Scheduled",
        "FitsNowhere",
        "spec.workersSpec.gpusPerWorker",
    ),
    (jobs.fixed("fixed", gpusPerWorker=9), "Scheduled", "Unschedulable", "Insufficient"),
    (
        jobs.changed(jobs.elastic("profile"), "spec.schedulerName", "alnair-schedular"),
        "Scheduled",
        "OtherScheduler",
        "spec.schedulerName",
    ),
    # What none of the kind can be must not keep the others' sizes from being planned.
    (
        jobs.torch("number", affinity={"nodeAffinity": 3}),
        "Created",
        "Refused",
        "spec.workersSpec.affinity: correct it",
    ),
    (
        jobs.elastic("misspelt", volumes=[{"name": "d", "secret": {"secretname": "x"}}]),
        "Created",
        "Refused",
        "spec.workersSpec.volumes: correct it",
    ),
    (
        jobs.changed(jobs.elastic("starts"), "spec.launcherSpec.securityContext", {"runAsUsr": 1}),
        "Created",
        "Refused",
        "spec.launcherSpec.securityContext: correct it",
    ),
    (
        jobs.torch("label", labels={"a b": "c"}),
        "Created",
        "Refused",
        "spec.workersSpec.labels: correct it",
    ),
    (jobs.fixed("claim", **VOLUME), "Scheduled", "Unschedulable", '"absent" not found'),
    (jobs.torch("claims", **VOLUME), "Scheduled", "FitsNowhere", '"absent" not found'),
]


async def conditions(client: Client, kind: str, name: str, namespace: str) -> dict[str, Manifest]:
    found = await client.get(KINDS[kind], name, namespace)
    return {one["type"]: one for one in (found.get("status") or {}).get("conditions") or ()}


async def make(client: Client, job: Manifest, namespace: str) -> None:
    await client.create(KINDS[job["kind"]], job, namespace)


@pytest.fixture
async def other_namespaces(admin: Client, namespace: str) -> AsyncIterator[dict[str, str]]:
    """Namespaces of which one may have no GPU, and one no Service."""
    made = {}
    for what, hard in {
        "gpus": {"requests.nvidia.com/gpu": "0"},
        "services": {"services": "0"},
    }.items():
        made[what] = f"{namespace}-{what}"
        await admin.create(NAMESPACES, {"metadata": {"name": made[what]}})
        quota = {"metadata": {"name": "none"}, "spec": {"hard": hard}}
        await admin.create(RESOURCE_QUOTAS, quota, made[what])
    yield made
    for name in made.values():
        await admin.delete(NAMESPACES, name)


async def test_each_trouble_ends_in_a_state_that_names_the_field_and_costs_no_more_writes(
    admin: Client,
    namespace: str,
    other_namespaces: dict[str, str],
    start_scheduler: StartScheduler,
    start_controller: StartController,
) -> None:
    await admin.create(SERVICES, TAKEN, namespace)
    start_scheduler()
    controller = start_controller()
    cases = [(namespace, *one) for one in TROUBLES]
    field = "spec.workersSpec.gpusPerWorker"
    quota = (jobs.fixed("quota"), "Scheduled", "QuotaExceeded", field)
    cases.append((other_namespaces["gpus"], *quota))
    # It finds room, and says no more of its Service once its workers have ended.
    service = jobs.torch("service")
    service["spec"]["workersSpec"] |= LASTS
    cases.append((other_namespaces["services"], service, "Created", "QuotaExceeded", "services=1"))
    for place, job, *_ in cases:
        await make(admin, job, place)
    amiss: list[Any] = []

    async def all_told() -> bool:
        amiss.clear()
        for place, job, kind, reason, words in cases:
            found = await conditions(admin, job["kind"], job["metadata"]["name"], place)
            said = found.get(kind, {})
            if (said.get("status"), said.get("reason")) != ("False", reason):
                amiss.append((job["metadata"]["name"], reason, found))
            elif words not in said["message"]:
                amiss.append((job["metadata"]["name"], words, said["message"]))
        return not amiss

    try:
        await eventually(all_told, 90)
    finally:
        print("amiss:", *amiss, sep="\n")
    warnings: set[tuple[str, str]] = set()

    async def all_warned() -> bool:
        for place in (namespace, *other_namespaces.values()):
            listed = await admin.list(EVENTS, place, field_selector="type=Warning")
            warnings.update((e["involvedObject"]["name"], e["reason"]) for e in listed.items)
        return {(job["metadata"]["name"], reason) for _, job, _, reason, _ in cases} <= warnings

    await eventually(all_warned)
    # A Service of somebody else is left as it was.
    service_now = await admin.get(SERVICES, "horovodjob-taken", namespace)
    assert service_now["spec"]["selector"] == {"app": "web"}
    assert "ownerReferences" not in service_now["metadata"]

    async def versions() -> list[str]:
        return [
            (await admin.get(KINDS[job["kind"]], job["metadata"]["name"], place))["metadata"][
                "resourceVersion"
            ]
            for place, job, *_ in cases
        ]

    async def at_rest() -> bool:  # the last word of a slow scheduler may still be to come
        before = await versions()
        await asyncio.sleep(2.5)
        return await versions() == before

    await eventually(at_rest)
    assert controller.process.poll() is None


async def test_names_that_are_alike_or_long_are_no_trouble_and_a_namespace_goes_as_a_whole(
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    start_controller: StartController,
) -> None:
    start_scheduler()
    controller = start_controller()
    long = "a" * 63
    made = [jobs.elastic("same", 1, 1), jobs.fixed("same", 1), jobs.torch("same", 1, 1)]
    made += [jobs.elastic(long, 1, 1), jobs.torch(long, 1, 1)]
    for job in made:
        spec = job["spec"]
        (spec.get("launcherSpec") or spec["workersSpec"]).update(LASTS)
        await make(admin, job, namespace)

    statuses: list[Any] = []

    async def all_run() -> bool:
        statuses[:] = [
            (await admin.get(KINDS[job["kind"]], job["metadata"]["name"], namespace)).get("status")
            for job in made
        ]
        return {(one or {}).get("phase") for one in statuses} == {"Running"}

    try:
        await eventually(all_run, 90)
    finally:
        print("statuses:", *statuses, sep="\n")
    await admin.delete(NAMESPACES, namespace)

    async def gone() -> bool:
        try:
            await admin.get(NAMESPACES, namespace)
        except NotFound:
            return not (await admin.list(STATEFUL_SETS, namespace)).items
        return False

    await eventually(gone, 90)
    assert controller.process.poll() is None
    # The fixture deletes it once more.
    await admin.create(NAMESPACES, {"metadata": {"name": namespace}})
