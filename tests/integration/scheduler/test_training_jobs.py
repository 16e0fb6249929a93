"""Training jobs in a real control plane: what is made, grown, shrunk, given back and left."""

import asyncio
import signal
import time
from collections import Counter
from typing import Any, Final

from alnair.elastic.fair_plan import PlanOptions
from alnair.kube.client import Client
from alnair.kube.crds.elastic_crds import TRAINING_JOBS
from alnair.kube.resources import (
    CONFIGMAPS,
    EVENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODGROUPS,
    PODS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    Manifest,
    grouped,
)
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from alnair.processes.controller.elastic.children import LOSSES
from kit import training_jobs as jobs
from kit.live.elastic_chaos import writes
from kit.live.scheduler_process import (
    SHORT_LEASE,
    StartController,
    StartScheduler,
    eventually,
    pod,
)
from kit.live.shared_clusters import SharedClusters

KINDS: Final = {one.kind: one.resource() for one in TRAINING_JOBS}
AUTOSCALERS: Final = grouped(
    "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"
)
#: A pod of a Job ends at once on simulated nodes, but for this.
LASTS: Final = {"annotations": {"ai.centaurus.io/simulated-duration": "3600s"}}


def lasting(manifest: Manifest, **run: Any) -> Manifest:
    """The job, whose launcher does not end by itself."""
    spec = manifest["spec"]
    spec["workersSpec"] |= LASTS
    if "launcherSpec" in spec:
        spec["launcherSpec"] |= LASTS
    spec["elasticPolicy"] = {"scaleDownGraceSeconds": 1}
    spec["network"] = {"isolated": True}
    spec["runPolicy"] = run
    return manifest


class Team:
    """A namespace with training jobs."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def make(self, manifest: Manifest) -> None:
        await self.client.create(KINDS[manifest["kind"]], manifest, self.namespace)

    async def status(self, kind: str, name: str) -> Manifest:
        found = await self.client.get(KINDS[kind], name, self.namespace)
        return found.get("status") or {}

    async def becomes(self, kind: str, name: str, **expected: Any) -> Manifest:
        """Wait until the status says so."""
        last: Manifest = {}

        async def is_so() -> bool:
            last.clear()
            last.update(await self.status(kind, name))
            return all(last.get(key) == value for key, value in expected.items())

        await eventually(is_so, what=lambda: f"{kind} {name} is not {expected}: {last}")
        return last

    async def change(self, kind: str, name: str, spec: Manifest) -> None:
        await self.client.merge_patch(KINDS[kind], name, {"spec": spec}, self.namespace)

    async def names(self, *resources: Any) -> list[str]:
        """All objects of these kinds that belong to jobs."""
        found = []
        for resource in resources:
            listed = (await self.client.list(resource, self.namespace)).items
            mine = (one for one in listed if "Job" in str(one["metadata"].get("labels")))
            found += [f"{resource.kind}/{one['metadata']['name']}" for one in mine]
        return found

    async def leaves_nothing(self) -> None:
        """Delete all jobs, and wait until nothing of them is left; others use the cluster, too."""
        for resource in KINDS.values():
            await self.client.delete_collection(resource, self.namespace)

        async def nothing() -> bool:
            every = (PODS, STATEFUL_SETS, JOBS, PODGROUPS, SERVICES, CONFIGMAPS, SECRETS)
            return await self.names(*every) == []

        await eventually(nothing, 40)


async def test_a_job_is_made_scaled_suspended_resumed_autoscaled_and_leaves_nothing(
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    start_controller: StartController,
) -> None:
    start_scheduler()
    start_controller()
    team, kind = Team(admin, namespace), "ElasticHorovodJob"
    await team.make(lasting(jobs.elastic("mnist", 2, 5)))
    status = await team.becomes(kind, "mnist", phase="Running", availableReplicas=5)
    assert (status["targetReplicas"], status["replicas"], status["scheduledReplicas"]) == (5, 5, 5)
    group = await admin.get(PODGROUPS, "podgroup-ehjob-mnist", namespace)
    assert group["spec"]["minMember"] == 5
    assert group["metadata"]["annotations"][names.ELASTIC_MIN] == "2"
    pods = (await admin.list(PODS, namespace)).items
    assert (
        min(p["metadata"]["creationTimestamp"] for p in pods)
        >= group["metadata"]["creationTimestamp"]
    )

    async def all_are_listed() -> bool:
        hosts = await admin.get(CONFIGMAPS, "elastichorovodjob-mnist-hosts", namespace)
        return bool(hosts["data"]["discover_hosts.sh"].count("echo ") == 5)

    # Writes of it are paced: it may follow the status.
    await eventually(all_are_listed, 20)
    # As kubectl scale does.
    scale: Manifest = {"spec": {"replicas": 3}}
    await admin.merge_patch(KINDS[kind], "mnist", scale, namespace, subresource="scale")
    await team.becomes(kind, "mnist", phase="Running", replicas=3, targetReplicas=3)
    workers = await admin.get(STATEFUL_SETS, "elastichorovodjob-mnist-workers", namespace)
    assert workers["spec"]["replicas"] == 3
    await team.change(kind, "mnist", {"runPolicy": {"suspend": True}})
    await team.becomes(kind, "mnist", phase="Suspended", replicas=0, targetReplicas=0)

    async def nothing_is_left() -> bool:
        return await team.names(PODS, STATEFUL_SETS, JOBS, PODGROUPS) == []

    await eventually(nothing_is_left)
    await team.change(kind, "mnist", {"runPolicy": {"suspend": False}})
    await team.becomes(kind, "mnist", phase="Running", availableReplicas=3)

    async def told() -> bool:
        events = (await admin.list(EVENTS, namespace)).items
        reasons = {e["reason"] for e in events if e["involvedObject"]["kind"] == kind}
        return {"LauncherRuns", "Suspended"} <= reasons

    await eventually(told)
    # Kubernetes' own autoscaler: below its minimum it needs no metrics to scale up.
    scaled = {"apiVersion": KINDS[kind].api_version, "kind": kind, "name": "mnist"}
    bounds = {"scaleTargetRef": scaled, "minReplicas": 4, "maxReplicas": 5}
    await admin.create(AUTOSCALERS, {"metadata": {"name": "mnist"}, "spec": bounds}, namespace)
    await team.becomes(kind, "mnist", phase="Running", availableReplicas=4)
    await admin.delete(AUTOSCALERS, "mnist", namespace)
    await team.leaves_nothing()


async def test_a_job_makes_room_for_those_that_wait(
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    start_controller: StartController,
) -> None:
    start_scheduler()
    start_controller()
    team = Team(admin, namespace)
    await team.make(lasting(jobs.elastic("wide", 4, 24)))
    await team.becomes("ElasticHorovodJob", "wide", phase="Running", availableReplicas=24)
    # kwok ends its pods at once: a training that is short.
    await team.make(jobs.fixed("short", 2, gpusPerWorker=4))
    await team.becomes("HorovodJob", "short", phase="Succeeded", replicas=0)
    status = await team.status("ElasticHorovodJob", "wide")
    # Two whole nodes are needed, and the last workers leave, wherever they are.
    assert 4 <= status["targetReplicas"] <= 16

    async def only_the_log_stays() -> bool:  # workers that leave do not count, and may be there yet
        found = await admin.list(PODS, namespace, label_selector="HorovodJob=short")
        left = [p for p in found.items if "deletionTimestamp" not in p["metadata"]]
        assert [p["status"]["phase"] for p in left] == ["Succeeded"], "the log stays"
        return len(found.items) == 1

    await eventually(only_the_log_stays)
    torch = lasting(jobs.torch("torch", 2, 2))
    await team.make(torch)
    await team.becomes("ElasticTorchJob", "torch", phase="Running", availableReplicas=2)
    made = await admin.get(JOBS, "elastictorchjob-torch-workers", namespace)
    assert (made["spec"]["parallelism"], made["spec"]["completions"]) == (2, 2)
    brief = jobs.changed(jobs.fixed("brief", 1), "spec.runPolicy.ttlSecondsAfterFinished", 0)
    await team.change("ElasticHorovodJob", "wide", {"runPolicy": {"suspend": True}})
    await team.make(brief)

    async def forgotten() -> bool:
        left = (await admin.list(KINDS["HorovodJob"], namespace)).items
        return "brief" not in {one["metadata"]["name"] for one in left}

    await eventually(forgotten, 40)
    await team.leaves_nothing()


async def test_a_worker_of_torchrun_that_is_lost_again_and_again_comes_back_as_soon_as_at_first(
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    start_controller: StartController,
) -> None:
    start_scheduler()
    start_controller()
    team = Team(admin, namespace)
    await team.make(lasting(jobs.torch("torch", 2, 2)))
    await team.becomes("ElasticTorchJob", "torch", phase="Running", availableReplicas=2)
    found = await admin.list(PODS, namespace, label_selector="ElasticTorchJob=torch")
    lost = max(found.items, key=lambda pod: pod["metadata"]["name"])["metadata"]
    # As if six were evicted before it: the Job alone would wait for 10 minutes.
    patch: Manifest = {"metadata": {"annotations": {LOSSES: "6"}}}
    await admin.merge_patch(PODS, lost["name"], patch, namespace)
    await admin.evict(namespace, lost["name"], lost["uid"])

    async def is_back() -> bool:
        now = await admin.list(PODS, namespace, label_selector="ElasticTorchJob=torch")
        run = [p["metadata"] for p in now.items if p["status"]["phase"] == "Running"]
        return len(run) == 2 and lost["uid"] not in {one["uid"] for one in run}

    await eventually(is_back, 40)
    await team.leaves_nothing()


async def test_a_gang_that_fits_nowhere_has_one_worker_less_and_one_that_waits_for_images_has_not(
    gpu_cluster: LocalCluster,
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    start_controller: StartController,
) -> None:
    start_controller()
    team, kind = Team(admin, namespace), "ElasticTorchJob"
    nodes = [node["metadata"]["name"] for node in (await admin.list(NODES)).items]
    every = len(nodes)
    # Nobody starts containers: so it looks while all images are being pulled.
    await gpu_cluster.stop("kwok", signal.SIGKILL)
    try:
        await team.make(lasting(jobs.torch("wide", 2, every, gpusPerWorker=4)))
        await team.becomes(kind, "wide", targetReplicas=every, replicas=every)
        taken = pod(namespace, "other", limits={names.GPU: "4"})
        taken["spec"]["nodeName"] = nodes[0]
        await admin.create(PODS, taken)
        start_scheduler()
        await team.becomes(kind, "wide", targetReplicas=every - 1, scheduledReplicas=every - 1)
        await asyncio.sleep(PlanOptions().reduce_after + 1)
        status = await team.status(kind, "wide")
        assert (status["targetReplicas"], status.get("availableReplicas", 0)) == (every - 1, 0)
    finally:
        await gpu_cluster.start("kwok")
    await team.becomes(kind, "wide", phase="Running", availableReplicas=every - 1)
    told: list[str] = []

    async def is_told() -> bool:
        selector = "reason=Unschedulable"
        events = (await admin.list(EVENTS, namespace, field_selector=selector)).items
        told[:] = [one["message"] for one in events if one["involvedObject"]["kind"] == kind]
        return f"{every} → {every - 1} workers: one worker less, as they fit nowhere" in told

    await eventually(is_told)
    assert not [one for one in told if one.startswith(f"{every - 1} →")]
    await team.leaves_nothing()


async def test_a_gang_that_cannot_shrink_does_not_keep_a_mark_of_somebody_else(
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    start_controller: StartController,
) -> None:
    start_scheduler()
    start_controller()
    team = Team(admin, namespace)
    await team.make(lasting(jobs.fixed("mnist", 2)))
    await team.becomes("HorovodJob", "mnist", phase="Running", availableReplicas=2)
    [group] = (await admin.list(PODGROUPS, namespace)).items
    name = group["metadata"]["name"]
    mark: Manifest = {"metadata": {"annotations": {names.ELASTIC_MIN: "1"}}}
    await admin.merge_patch(PODGROUPS, name, mark, namespace)

    async def is_gone() -> bool:
        meta = (await admin.get(PODGROUPS, name, namespace))["metadata"]
        return names.ELASTIC_MIN not in (meta.get("annotations") or {})

    await eventually(is_gone, 20)
    await team.leaves_nothing()


async def test_a_new_leader_applies_only_what_differs(
    gpu_cluster: LocalCluster,
    shared_clusters: SharedClusters,
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    start_controller: StartController,
) -> None:
    start_scheduler()
    first = start_controller(*SHORT_LEASE)
    team, kind = Team(admin, namespace), "ElasticHorovodJob"
    await team.make(lasting(jobs.elastic("job-01", 1, 3)))
    await team.becomes(kind, "job-01", phase="Running", availableReplicas=3)
    first.signal(signal.SIGKILL)
    since = time.time()
    group = "podgroup-ehjob-job-01"
    await admin.merge_patch(PODGROUPS, group, {"spec": {"minMember": 9}}, namespace)
    service = "elastichorovodjob-job-01"
    await admin.delete(SERVICES, service, namespace)
    start_controller(*SHORT_LEASE)

    async def is_put_right() -> bool:
        found = await admin.get(PODGROUPS, group, namespace)
        services = await team.names(SERVICES)
        return found["spec"]["minMember"] == 3 and services == [f"Service/{service}"]

    await eventually(is_put_right)
    await team.change(kind, "job-01", {"workersSpec": {"targetReplicas": 2}})
    await team.becomes(kind, "job-01", phase="Running", replicas=2, targetReplicas=2)
    audit = shared_clusters.audits / f"{gpu_cluster.name}.log"
    written = Counter(what for _, what, _ in writes(audit, since))
    assert written["patch services"] == 1, "one was gone"
    assert (written["patch networkpolicies"], written["create secrets"]) == (0, 0)
    await team.leaves_nothing()


async def test_a_namespace_with_running_jobs_ends_when_it_is_deleted(
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    start_controller: StartController,
) -> None:
    start_scheduler()
    controller = start_controller()
    team = Team(admin, f"{namespace}-ends")
    await admin.create(NAMESPACES, {"metadata": {"name": team.namespace}})
    await team.make(lasting(jobs.elastic("mnist", 2, 3)))
    await team.make(lasting(jobs.torch("torch", 2, 2)))
    await team.becomes("ElasticHorovodJob", "mnist", phase="Running", availableReplicas=3)
    await team.becomes("ElasticTorchJob", "torch", phase="Running", availableReplicas=2)
    await admin.delete(NAMESPACES, team.namespace)

    async def gone() -> bool:
        return team.namespace not in {
            one["metadata"]["name"] for one in (await admin.list(NAMESPACES)).items
        }

    await eventually(gone, 60)
    assert controller.process.poll() is None
