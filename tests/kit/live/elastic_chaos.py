"""Training jobs while all else fails: commands, lost nodes, killed processes, objects taken away.

All choices come from one seed. What the API server refuses while it is down is left out, but for
what puts things right again.
"""

import asyncio
import contextlib
import json
import random
import re
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from alnair.kube.client import Client
from alnair.kube.crds.elastic_crds import TRAINING_JOBS
from alnair.kube.errors import AlreadyExists, KubeError, NotFound
from alnair.kube.resources import (
    CONFIGMAPS,
    ELASTIC_QUOTAS,
    JOBS,
    NETWORK_POLICIES,
    NODES,
    PODGROUPS,
    PODS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    Manifest,
)
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from kit import training_jobs as jobs
from kit.live.audited_requests import events
from kit.live.scheduler_process import SHORT_LEASE, ControllerProcess, SchedulerProcess

KINDS: Final = {one.kind: one.resource() for one in TRAINING_JOBS}
#: What a job is made of.
CHILDREN: Final = (
    STATEFUL_SETS,
    JOBS,
    PODGROUPS,
    SERVICES,
    CONFIGMAPS,
    SECRETS,
    NETWORK_POLICIES,
    PODS,
)
#: How often each happens, of all events.
_WEIGHTS: Final = {
    "scale": 30,
    "child": 35,
    "group": 15,
    "suspend": 12,
    "quota": 10,
    "node": 12,
    "anew": 6,
    "controller": 8,
    "scheduler": 8,
    "API server": 6,
}
_LASTS: Final = "ai.centaurus.io/simulated-duration"
_ENDED: Final = ("Succeeded", "Failed")
#: Verbs of the audit log that read.
_READS: Final = ("get", "list", "watch")

JobKey = tuple[str, str]


class ElasticChaos:
    """The jobs, the processes, and what happens to them.

    Args:
        cluster: A full one with simulated GPU nodes.
        client: Of an administrator.
        namespace: Of all jobs.
        folder: For logs.
        seed: Of all choices.

    Attributes:
        done: How often each event happened.
        ends: How each job shall end; empty: it is gone then.
    """

    def __init__(
        self, cluster: LocalCluster, client: Client, namespace: str, folder: Path, seed: int
    ) -> None:
        self.done: Counter[str] = Counter()
        self.ends: dict[JobKey, str] = {}
        self._cluster, self._client, self._namespace = cluster, client, namespace
        self._folder = folder
        self._chance = random.Random(seed)
        self._manifests: dict[JobKey, Manifest] = {}
        self._suspended: set[JobKey] = set()
        self._repairs: set[asyncio.Task[None]] = set()
        self._scheduler = SchedulerProcess(cluster, folder, "scheduler-0", *SHORT_LEASE)
        self._controller = ControllerProcess(cluster, folder, "controller-0", *SHORT_LEASE)
        self._events: dict[str, Callable[[], Awaitable[None]]] = {
            "scale": self._scale,
            "child": self._delete_child,
            "group": self._edit_group,
            "suspend": self._suspend,
            "quota": self._change_quota,
            "node": self._lose_node,
            "anew": self._make_anew,
            "controller": self._kill_controller,
            "scheduler": self._kill_scheduler,
            "API server": self._kill_api_server,
        }

    async def make_jobs(self, count: int, shortest: float, longest: float) -> None:
        """Make jobs of all kinds, which last so many seconds if nobody disturbs them."""
        for number in range(count):
            # The fifth has a deadline that ends it.
            lasts = 3600 if number == 4 else self._chance.uniform(shortest, longest)
            manifest = self._job(number, lasts)
            key = (manifest["kind"], manifest["metadata"]["name"])
            run = manifest["spec"]["runPolicy"]
            self.ends[key] = "Succeeded"
            if number == 4:
                run["activeDeadlineSeconds"] = int(shortest)
                self.ends[key] = "Failed"
            elif number == 5:
                run["ttlSecondsAfterFinished"] = 1
                self.ends[key] = ""
            self._manifests[key] = manifest
            await self._insist(lambda m=manifest: self._create(m))

    async def run(self, count: int, pause: float) -> None:
        """Let so many events happen, with pauses of so many seconds on average."""
        some = self._chance.choices([*_WEIGHTS], [*_WEIGHTS.values()], k=count - len(_WEIGHTS))
        every = [*_WEIGHTS, *some]
        self._chance.shuffle(every)
        for name in every:
            await asyncio.sleep(pause * self._chance.uniform(0.2, 1.8))
            with contextlib.suppress(KubeError, OSError, TimeoutError):
                await self._events[name]()
            self.done[name] += 1

    async def calm(self) -> None:
        """Put right what no operator could: nodes, quotas, and what users suspended."""
        await asyncio.gather(*self._repairs)
        await self._insist(lambda: self._delete(ELASTIC_QUOTAS, "team"))
        for key in sorted(self._suspended):
            await self._insist(lambda key=key: self._set_suspended(key, on=False))

    async def amiss(self) -> list[str]:
        """Return the jobs that have not ended as they should, and how they are."""
        found: dict[JobKey, str] = {}
        for kind, resource in KINDS.items():
            for one in (await self._client.list(resource, self._namespace)).items:
                status = one.get("status") or {}
                found[kind, one["metadata"]["name"]] = str(status.get("phase"))
        wrong = []
        for key, end in self.ends.items():
            if found.get(key, "") != end:
                wrong.append(f"{key}: {found.get(key, 'gone')}, not {end or 'gone'}")
        return wrong

    async def holding(self) -> list[str]:
        """Return what holds something though all jobs have ended."""
        found = await self._names(PODGROUPS, STATEFUL_SETS)
        for pod in (await self._client.list(PODS, self._namespace)).items:
            if pod["status"].get("phase") not in _ENDED:
                found.append(f"Pod/{pod['metadata']['name']}")
        return found

    async def picture(self) -> list[str]:
        """Return what there is of jobs, for who looks into a failure."""
        found = []
        for resource in (STATEFUL_SETS, JOBS, PODGROUPS, PODS):
            for one in await self._of_jobs(resource):
                meta, status = one["metadata"], one.get("status") or {}
                owner = next((o["uid"] for o in meta.get("ownerReferences") or []), "nobody")
                found.append(
                    f"{resource.kind}/{meta['name']} {meta['uid']} of {owner}"
                    f" since {meta['creationTimestamp']}, ends {meta.get('deletionTimestamp')},"
                    f" {status.get('phase')} on {one['spec'].get('nodeName')}"
                )
                if resource is JOBS:
                    found[-1] += f", of {one['spec'].get('completions')}: {json.dumps(status)}"
        return found

    async def delete_jobs(self) -> None:
        """Delete all jobs."""
        for resource in KINDS.values():
            await self._client.delete_collection(resource, self._namespace)

    async def left(self) -> list[str]:
        """Return what is left of jobs that were deleted."""
        return await self._names(*CHILDREN)

    def close(self) -> None:
        """End the processes, and show the ends of their logs."""
        for process in (self._scheduler, self._controller):
            process.close()
            print(process.log.read_text()[-3000:])

    def alive(self) -> bool:
        """Whether both processes run: they end by nothing but our kills."""
        both = (self._scheduler, self._controller)
        return all(one.process.poll() is None for one in both)

    # --- the jobs ---------------------------------------------------------------------------------

    def _job(self, number: int, lasts: float) -> Manifest:
        chance, name = self._chance, f"job-{number:02d}"
        least, gpus = chance.choice((1, 1, 2)), chance.choice((1, 1, 2))
        most = least + chance.randrange(1, 5)
        made = (
            lambda: jobs.elastic(name, least, most, gpusPerWorker=gpus),
            lambda: jobs.torch(name, least, most, gpusPerWorker=gpus),
            lambda: jobs.fixed(name, least, gpusPerWorker=gpus),
        )[number % 3]()
        spec = made["spec"]
        ends = spec.get("launcherSpec") or spec["workersSpec"]
        ends["annotations"] = {_LASTS: f"{lasts:.0f}s"}
        spec["elasticPolicy"] = {"scaleDownGraceSeconds": 1}
        spec["network"] = {"isolated": chance.random() < 0.5}
        # What is deleted from outside counts as a failure of torchrun's and the launcher's Jobs.
        spec["runPolicy"] = {"backoffLimit": 1000}
        if made["kind"] == "HorovodJob":
            del spec["elasticPolicy"]
        return made

    async def _create(self, manifest: Manifest) -> None:
        await self._client.create(KINDS[manifest["kind"]], manifest, self._namespace)

    def _some_job(self) -> JobKey:
        return self._chance.choice([*self._manifests])

    # --- what happens -----------------------------------------------------------------------------

    async def _scale(self) -> None:
        kind, name = self._chance.choice([k for k in self._manifests if k[0] != "HorovodJob"])
        workers = self._manifests[kind, name]["spec"]["workersSpec"]
        size = self._chance.randint(workers["minReplicas"], workers["maxReplicas"])
        scale: Manifest = {"spec": {"replicas": size}}
        resource = KINDS[kind]
        await self._client.merge_patch(resource, name, scale, self._namespace, subresource="scale")

    async def _delete_child(self) -> None:
        resource = self._chance.choice(CHILDREN)
        found = await self._of_jobs(resource)
        if found:
            name = self._chance.choice(found)["metadata"]["name"]
            # Without a word how: a Job's pods would be left without an owner.
            await self._client.delete(resource, name, self._namespace, propagation="Background")

    async def _edit_group(self) -> None:
        found = await self._of_jobs(PODGROUPS)
        if not found:
            return
        edit: Manifest = self._chance.choice(
            (
                {"spec": {"minMember": self._chance.randint(1, 9)}},
                {"metadata": {"annotations": {names.ELASTIC_MIN: None}}},
                {"metadata": {"annotations": {names.ELASTIC_MIN: "7"}}},
                {"metadata": {"labels": {"edited": "yes"}}},
            )
        )
        name = self._chance.choice(found)["metadata"]["name"]
        await self._client.merge_patch(PODGROUPS, name, edit, self._namespace)

    async def _suspend(self) -> None:
        key = self._some_job()
        await self._set_suspended(key, on=key not in self._suspended)

    async def _set_suspended(self, key: JobKey, *, on: bool) -> None:
        patch = {"spec": {"runPolicy": {"suspend": on}}}
        with contextlib.suppress(NotFound):
            await self._client.merge_patch(KINDS[key[0]], key[1], patch, self._namespace)
        (self._suspended.add if on else self._suspended.discard)(key)

    async def _change_quota(self) -> None:
        gpus = self._chance.choice((0, 4, 10, 20))
        quota = {
            "apiVersion": ELASTIC_QUOTAS.api_version,
            "kind": ELASTIC_QUOTAS.kind,
            "metadata": {"name": "team", "namespace": self._namespace},
            "spec": {"min": {names.GPU: min(4, gpus)}, "max": {names.GPU: gpus}},
        }
        await self._client.apply(ELASTIC_QUOTAS, quota, field_manager="chaos")
        if self._chance.random() < 0.4:
            await self._delete(ELASTIC_QUOTAS, "team")

    async def _lose_node(self) -> None:
        """Take a node away, sometimes with its pods, and bring it back after a while."""
        found = (await self._client.list(NODES)).items
        if len(found) < 2:
            return
        node = self._chance.choice(found)
        name = node["metadata"]["name"]
        away, forgets = self._chance.uniform(0.5, 6), self._chance.random() < 0.7
        await self._client.delete(NODES, name)

        async def repair() -> None:
            await asyncio.sleep(away / 2)
            if forgets:  # as the collector of pods does when a node is away for long
                await self._insist(lambda: self._delete_pods_of(name))
            await asyncio.sleep(away / 2)
            metadata = {k: node["metadata"].get(k, {}) for k in ("name", "labels", "annotations")}
            again = {"metadata": metadata, "spec": {}, "status": node["status"]}
            await self._insist(lambda: self._client.create(NODES, again))

        task = asyncio.create_task(repair())
        self._repairs.add(task)
        task.add_done_callback(self._repairs.discard)

    async def _delete_pods_of(self, node: str) -> None:
        on_it = f"spec.nodeName={node}"
        for pod in (await self._client.list(PODS, field_selector=on_it)).items:
            meta = pod["metadata"]
            with contextlib.suppress(NotFound):
                await self._client.delete(PODS, meta["name"], meta["namespace"], grace_seconds=0)

    async def _make_anew(self) -> None:
        """Delete a job, and at once make another one of the same name."""
        key = self._some_job()
        await self._delete(KINDS[key[0]], key[1])
        await self._insist(lambda: self._create(self._manifests[key]))
        self._suspended.discard(key)

    async def _kill_controller(self) -> None:
        await asyncio.to_thread(self._controller.signal, signal.SIGKILL)
        identity = f"controller-{self.done['controller'] + 1}"
        self._controller = ControllerProcess(self._cluster, self._folder, identity, *SHORT_LEASE)

    async def _kill_scheduler(self) -> None:
        await asyncio.to_thread(self._scheduler.signal, signal.SIGKILL)
        identity = f"scheduler-{self.done['scheduler'] + 1}"
        self._scheduler = SchedulerProcess(self._cluster, self._folder, identity, *SHORT_LEASE)

    async def _kill_api_server(self) -> None:
        await self._cluster.restart("kube-apiserver", signal.SIGKILL)

    # --- parts ------------------------------------------------------------------------------------

    async def _of_jobs(self, resource: Any) -> list[Manifest]:
        found = (await self._client.list(resource, self._namespace)).items
        return [one for one in found if KINDS.keys() & (one["metadata"].get("labels") or {}).keys()]

    async def _names(self, *resources: Any) -> list[str]:
        return [
            f"{resource.kind}/{one['metadata']['name']}"
            for resource in resources
            for one in await self._of_jobs(resource)
        ]

    async def _delete(self, resource: Any, name: str) -> None:
        with contextlib.suppress(NotFound):
            await self._client.delete(resource, name, self._namespace, propagation="Background")

    async def _insist(self, call: Callable[[], Awaitable[object]]) -> None:
        """Do it, however long the API server is away; it may have been done without an answer."""
        for _ in range(200):
            try:
                await call()
            except AlreadyExists:
                return
            except (KubeError, OSError, TimeoutError):
                await asyncio.sleep(0.2)
            else:
                return
        raise RuntimeError("the API server did not come back")


def writes(audit: Path, since: float = 0.0) -> Iterator[tuple[str, str, float]]:
    """Return each write of the controller for a job: the job, what it wrote, and when."""
    for event in events(audit):
        about = event.get("objectRef") or {}
        if event["user"]["username"] != "alnair-controller" or event["verb"] in _READS:
            continue
        job = re.search(r"job-\d\d(?=\D|$)", str(about.get("name")))
        at = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
        if job is not None and at >= since:
            what = "/".join(filter(None, (about["resource"], about.get("subresource"))))
            yield job[0], f"{event['verb']} {what}", at
