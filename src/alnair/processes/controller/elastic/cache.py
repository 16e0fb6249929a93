"""Local copies of training jobs and of their objects, by job; who changed is marked."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from alnair.elastic.child_names import child_names, makers
from alnair.elastic.desired import Child
from alnair.elastic.observed import Group, Hosts, Launcher, Observed, Worker
from alnair.kube.backoff import Backoff
from alnair.kube.client import Client
from alnair.kube.errors import KubeError
from alnair.kube.informer import Change, ChangeKind, Informer
from alnair.kube.objects import training_jobs as wires
from alnair.kube.resources import (
    CONFIGMAPS,
    ELASTIC_HOROVOD_JOBS,
    ELASTIC_TORCH_JOBS,
    HOROVOD_JOBS,
    JOBS,
    NETWORK_POLICIES,
    PODGROUPS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from alnair.model import names
from alnair.model.training_job import TrainingJob
from alnair.processes.controller.elastic import children
from alnair.processes.controller.elastic.children import (
    ChildGroup,
    ChildPart,
    ChildPod,
    ChildSet,
    JobKey,
)
from alnair.processes.controller.elastic.complaints import Suspect
from alnair.processes.controller.elastic.orphans import Orphan

RESOURCES: dict[str, Resource[Any]] = {
    "ElasticHorovodJob": ELASTIC_HOROVOD_JOBS,
    "HorovodJob": HOROVOD_JOBS,
    "ElasticTorchJob": ELASTIC_TORCH_JOBS,
}
_WIRES: dict[str, Any] = {
    "ElasticHorovodJob": wires.ElasticHorovodJobWire,
    "HorovodJob": wires.HorovodJobWire,
    "ElasticTorchJob": wires.ElasticTorchJobWire,
}
_ROLES = "role in (worker,launcher)"
#: Seconds after which a look that failed is repeated, at first and at most.
_RETRY: Final = 1.0
_RETRY_MOST: Final = 30.0
_PARTS: Final = (SERVICES, CONFIGMAPS, NETWORK_POLICIES)
_Child = TypeVar("_Child", ChildSet, ChildGroup, ChildPart)


class JobCache:
    """Follows jobs and their objects.

    Args:
        client: An open client.
        mark: Told of each job that changed, or whose objects did.
    """

    def __init__(self, client: Client, mark: Callable[[JobKey], None]) -> None:
        self._client = client
        self._mark = mark
        #: Set once there is a job, or a pod of one.
        self.any = asyncio.Event()
        self.jobs: dict[JobKey, TrainingJob] = {}
        self._pods: defaultdict[JobKey, dict[str, ChildPod]] = defaultdict(dict)
        self._sets: defaultdict[JobKey, dict[str, ChildSet]] = defaultdict(dict)
        self._groups: defaultdict[JobKey, dict[str, ChildGroup]] = defaultdict(dict)
        self._parts: dict[str, defaultdict[JobKey, dict[str, ChildPart]]] = {
            part.kind: defaultdict(dict) for part in _PARTS
        }
        self._of_jobs: list[Informer[Any, TrainingJob]] = [
            Informer(client, RESOURCES[kind].typed(wire), wires.project_training_job, self._job)
            for kind, wire in _WIRES.items()
        ]
        self._of_children: list[Informer[Any, Any]] = [
            Informer(
                client,
                PODS.typed(children.PodWire),
                children.project_pod,
                self._child("pod", self._pods),
                label_selector=_ROLES,
            ),
            Informer(
                client,
                STATEFUL_SETS.typed(children.StatefulSetWire),
                children.project_set,
                self._child("set", self._sets),
                label_selector="role=worker",
            ),
            Informer(
                client,
                JOBS.typed(children.BatchJobWire),
                children.project_batch_job,
                self._child("job", self._sets),
                label_selector=_ROLES,
            ),
            Informer(
                client,
                PODGROUPS.typed(children.GroupWire),
                children.project_group,
                self._child("group", self._groups),
            ),
            *(
                Informer(
                    client,
                    part.typed(children.PartWire),
                    children.project_part,
                    self._child("part", self._parts[part.kind]),
                    label_selector=names.JOB_PART,
                )
                for part in _PARTS
            ),
        ]

    async def follow(self) -> None:
        """Follow until cancelled; objects of jobs only once there is a job, or a pod of one."""
        async with asyncio.TaskGroup() as group:
            for informer in self._of_jobs:
                group.create_task(informer.run())
            group.create_task(self._look_for_pods())
            await self.any.wait()
            for child in self._of_children:
                group.create_task(child.run())

    async def _look_for_pods(self) -> None:
        """Follow objects also where the last job went while nobody saw it, and left pods."""
        backoff = Backoff(_RETRY, _RETRY_MOST)
        while not self.any.is_set():
            try:
                found = await self._client.list(PODS.typed(children.PodWire), label_selector=_ROLES)
            except KubeError:
                await asyncio.sleep(backoff.next())
                continue
            if any(children.project_pod(one).job for one in found.items):
                self.any.set()
            return

    async def synced(self) -> None:
        """Wait until all that existed at the start is known."""
        for informer in self._of_jobs:
            await informer.known_soon()
        await self.any.wait()
        for child in self._of_children:
            await child.known_soon()

    def pods(self, key: JobKey, role: str) -> list[ChildPod]:
        """Return the pods of a job that have not ended, by index."""
        found = (pod for pod in self._pods.get(key, {}).values() if pod.role == role)
        return sorted((pod for pod in found if not pod.ended), key=lambda pod: pod.index)

    def observed(
        self, key: JobKey, hosts: Hosts | None, *, has_keys: bool, complaint: str = ""
    ) -> Observed:
        """Return what there is of a job.

        Args:
            key: Which.
            hosts: What its host discovery says.
            has_keys: Its Secret is there.
            complaint: What Kubernetes says of its pods.
        """
        workers, launcher = self._set(key, "worker"), self._set(key, "launcher")
        group = next(self._own(key, self._groups), None)
        return Observed(
            size=None if workers is None else workers.size,
            ending=None if workers is None else workers.ending,
            done=0 if workers is None else workers.done,
            workers=[
                Worker(
                    pod.index,
                    pod.placed,
                    pod.ready,
                    # What made it is gone, and so it goes, too.
                    pod.leaving or workers is None or pod.owner != workers.uid,
                    pod.problem,
                    pod.node,
                    pod.uid,
                )
                for pod in self.pods(key, "worker")
                if pod.leaving or not pod.over
            ],
            completed=0 if workers is None else self._completed(key, workers.uid),
            launcher=None if launcher is None else self._launcher(key, launcher),
            group=None
            if group is None
            else Group(group.placed, group.refusal, group.members, group.least),
            hosts=hosts,
            has_keys=has_keys,
            parts=frozenset(
                (kind, one.name)
                for kind, index in self._parts.items()
                for one in self._own(key, index)
            ),
            complaint=complaint,
            avoids=() if workers is None else workers.avoids,
            settled=workers is None or workers.settled,
        )

    def digests(self, key: JobKey) -> dict[Child, str]:
        """Return what a job's objects say was applied of them at last, whoever led then."""
        job = self.jobs.get(key)
        if job is None:
            return {}
        found: dict[Child, str] = {}
        if (group := next(self._own(key, self._groups), None)) is not None:
            found[Child("PodGroup", child_names(job).group)] = group.applied
        for kind, index in self._parts.items():
            found |= {Child(kind, one.name): one.applied for one in self._own(key, index)}
        return {child: digest for child, digest in found.items() if digest}

    def has_workers(self, key: JobKey) -> bool:
        """Whether what makes a job's workers is there."""
        return self._set(key, "worker") is not None

    def suspects(self, key: JobKey) -> list[Suspect]:
        """Return what of a job may be why it does not get on: what makes too few pods, or a pod.

        Of each role one pod that has a node and does not run, and no reason that is known.
        """
        job, found = self.jobs.get(key), []
        if job is None or job.finished:
            return []
        for role, name in zip(("worker", "launcher"), makers(job.kind, job.name), strict=True):
            made = self._set(key, role)
            if made is None or made.ending is not None or made.done:
                continue
            pods = [pod for pod in self.pods(key, role) if pod.owner == made.uid]
            if len(pods) < made.size:
                kind = "StatefulSet" if made.is_endless else "Job"
                found.append(Suspect(role, kind, name, made.uid))
            slow = (p for p in pods if p.placed and not (p.running or p.leaving or p.problem))
            if (pod := next(slow, None)) is not None:
                found.append(Suspect(role, "Pod", pod.name, pod.uid))
        return found

    def lost(self, key: JobKey) -> list[str]:
        """Return the workers' pods that failed in a place where others were lost before."""
        made = self._set(key, "worker")
        if made is None or made.ending is not None or made.done:
            return []
        found = self._pods.get(key, {}).values()
        return [pod.name for pod in found if pod.losses and pod.owner == made.uid]

    def orphans(self, key: JobKey) -> list[Orphan]:
        """Return the pods of a job, or of a former one of its name, whose maker is not known.

        Of those that have ended or are being deleted, and where the job itself is gone, only the
        ones that wait for their maker.
        """
        known = {one.uid for one in self._sets.get(key, {}).values()}
        workers, launcher = makers(key[0], key[2])
        has_set = key[0] != "ElasticTorchJob"
        whose = {"worker": (workers, has_set), "launcher": (launcher, False)}
        return [
            Orphan(pod.name, pod.uid, pod.owner, *whose[pod.role], held=pod.held)
            for pod in self._pods.get(key, {}).values()
            if pod.role in whose and pod.owner and pod.owner not in known
            if pod.held or (key in self.jobs and not (pod.ended or pod.leaving))
        ]

    def known(self) -> set[JobKey]:
        """Return the jobs that there are, and those of which there are pods."""
        return {*self.jobs, *self._pods}

    def _set(self, key: JobKey, role: str) -> ChildSet | None:
        return next((one for one in self._own(key, self._sets) if one.role == role), None)

    def _own(self, key: JobKey, index: Mapping[JobKey, dict[str, _Child]]) -> Iterator[_Child]:
        """Return what belongs to the job itself, and not to a former one of its name."""
        job = self.jobs.get(key)
        found = index.get(key, {}).values()
        return (one for one in found if job is not None and one.owner == job.uid)

    def _completed(self, key: JobKey, owner: str) -> int:
        found = self._pods.get(key, {}).values()
        return sum(pod.completed and not pod.leaving and pod.owner == owner for pod in found)

    def _launcher(self, key: JobKey, made: ChildSet) -> Launcher:
        pods = [pod for pod in self.pods(key, "launcher") if pod.owner == made.uid]
        if not pods:
            before = [pod for pod in self._pods.get(key, {}).values() if pod.owner == made.uid]
            well = any(pod.completed for pod in before) if before else None
            return Launcher(ending=made.ending, ended_well=well)
        pod = pods[0]
        return Launcher(
            running=pod.running,
            since=pod.since,
            pod=pod.name,
            hosts_seen=pod.hosts_seen,
            ending=made.ending,
            problem=pod.problem,
        )

    def _job(self, change: Change[TrainingJob]) -> None:
        if change.kind is ChangeKind.SYNCED:
            return
        one = change.new or change.old
        assert one is not None
        key = (one.kind, one.namespace, one.name)
        if change.new is None:
            self.jobs.pop(key, None)
        else:
            self.jobs[key] = change.new
            self.any.set()
        self._mark(key)

    def _child(
        self, what: str, index: defaultdict[JobKey, dict[str, Any]]
    ) -> Callable[[Change[Any]], None]:
        def changed(change: Change[Any]) -> None:
            name = f"{what}:{change.key[1]}"
            for one, is_new in ((change.old, False), (change.new, True)):
                if one is None or one.job is None:
                    continue
                if is_new:
                    index[one.job][name] = one
                else:
                    index[one.job].pop(name, None)
                    if not index[one.job]:
                        del index[one.job]
                self._mark(one.job)

        return changed
