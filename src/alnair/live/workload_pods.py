"""Finds the pods of what made them, named as kubectl does: job/NAME, deploy/NAME, and so on."""

import re
import time
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from alnair.kube.client import Client
from alnair.kube.errors import ApiError, NotFound
from alnair.kube.objects import wire
from alnair.kube.owners import OwnerWalk, controller_of
from alnair.kube.pod_groups.gang_labels import group_of
from alnair.kube.resources import EVENTS, PODS, Manifest, Resource
from alnair.kube.served_kinds import meant, served_kinds, words
from alnair.kube.timestamps import timestamp
from alnair.live.missing_pods import CreationEvent, missing, wanted_pods
from alnair.model.near_names import near
from alnair.model.owners import Owner, OwnerRef
from alnair.model.plurals import counted

_ENDED: Final = ("Succeeded", "Failed")
_NUMBER: Final = re.compile(r"(\d+)")
#: How many pods something wants is in one of these.
_WANTED: Final = ("replicas", "parallelism", "completions")
#: Conditions of Jobs and training jobs that have ended.
_OVER: Final = ("Complete", "Succeeded", "Failed")
#: That of training jobs, which have no pods as long as there is no room for the fewest of them.
_SCHEDULED: Final = "Scheduled"


class WorkloadError(Exception):
    """It has no pod that could be looked at; says why and what to do."""


class _Spec(Struct, rename="camel"):
    node_name: str = ""
    scheduling_group: wire.SchedulingGroup | None = None


class _Status(Struct):
    phase: str = ""


class _Pod(Struct):
    metadata: wire.ObjectMeta
    spec: _Spec = field(default_factory=_Spec)
    status: _Status = field(default_factory=_Status)

    @property
    def stage(self) -> int:
        """0 for one that waits, 1 for one that has a node, 2 for one that goes or has ended."""
        if self.metadata.deletion_timestamp or self.status.phase in _ENDED:
            return 2
        return 1 if self.spec.node_name else 0


class _Named(Struct):
    metadata: wire.ObjectMeta


async def pod_of(
    client: Client, namespace: str, kind: str, name: str
) -> tuple[str, tuple[str, ...]]:
    """Return the pod of a workload that one wants to hear of, and sentences that say which.

    One that waits goes first, then one that has a node, then one that has ended. The first
    sentence is of pods that do not exist, where they are refused.

    Args:
        client: An open client.
        namespace: Of the workload.
        kind: As kubectl takes it: `job`, `deploy`, `statefulsets.apps`, `ehj`, `PodGroup`.
        name: Of the workload.

    Raises:
        WorkloadError: There is no such kind or object, or it has no pods.
        KubeError: The cluster cannot be read.
    """
    resource = await _resource(client, kind)
    what = f"{resource.kind} {name}"
    made = await _object(client, resource, namespace, name)
    uid = made["metadata"]["uid"]
    if resource.kind == "PodGroup":
        pods = await _members(client, namespace, name)
    else:
        pods = await _owned(client, namespace, name, uid)
    if not pods:
        raise WorkloadError(f"{what} has no pods: {await _why_none(client, resource, made)}")
    pods.sort(key=lambda one: (one.stage, _natural(one.metadata.name)))
    lacks = await _missing(client, made | {"kind": resource.kind}, pods)
    return pods[0].metadata.name, tuple(filter(None, (lacks, _which(what, pods))))


def _which(what: str, pods: Sequence[_Pod]) -> str:
    """Return how many pods there are, and which is the first of them."""
    stages = [one.stage for one in pods]
    pod = pods[0].metadata.name
    if len(pods) == 1:
        return f"{what} has one pod, {pod}"
    parts = zip(("without a node", "with a node", "ended or ending"), range(3), strict=True)
    counts = ", ".join(f"{stages.count(at)} {text}" for text, at in parts if at in stages)
    return f"{what} has {counted(len(pods), 'pod')}, {counts}: this is {pod}"


async def _missing(client: Client, made: Manifest, pods: Sequence[_Pod]) -> str:
    """Return how many pods of an object do not exist, and why, if they are refused."""
    if wanted_pods(made) is None or has_ended(made):
        return ""
    started = [timestamp(one.metadata.creation_timestamp) for one in pods if one.stage < 2]
    return missing(made, started, await _refusals(client, made["metadata"]["namespace"]))


async def _resource(client: Client, kind: str) -> Resource[Manifest]:
    kinds = await served_kinds(client)
    found = meant(kind, kinds)
    if found is None:
        close = near(kind.lower(), words(kinds))
        hint = f"did you mean {' or '.join(close)}?" if close else "see 'kubectl api-resources'"
        raise WorkloadError(f"the cluster knows no kind {kind}; {hint}")
    if not found.namespaced:
        raise WorkloadError(
            f"a {found.kind} has no pods that wait for it: name a pod, or what made it, such as"
            " job/NAME"
        )
    return found


async def _object(
    client: Client, resource: Resource[Manifest], namespace: str, name: str
) -> Manifest:
    try:
        return await client.get(resource, name, namespace)
    except NotFound:
        pass
    kind = resource.kind
    found = await client.list(resource.typed(_Named), namespace)
    hint = f"list them with 'kubectl get {resource.plural} -A'"
    if close := near(name, (one.metadata.name for one in found.items)):
        hint = f"did you mean {' or '.join(close)}?"
    raise WorkloadError(f"no {kind} {name} in namespace {namespace}; {hint}")


async def _members(client: Client, namespace: str, group: str) -> list[_Pod]:
    pods = (await client.list(PODS.typed(_Pod), namespace)).items
    return [
        one
        for one in pods
        if group_of(one.metadata.labels or {}, one.spec.scheduling_group) == group
    ]


async def _owned(client: Client, namespace: str, name: str, uid: str) -> list[_Pod]:
    """Return the pods of a namespace above which an object is."""
    walk = OwnerWalk(client, time.monotonic)
    pods = (await client.list(PODS.typed(_Pod), namespace)).items
    return [one for one in pods if await _is_above(walk, one.metadata, name, uid, "Pod")]


async def _is_above(walk: OwnerWalk, meta: wire.ObjectMeta, name: str, uid: str, kind: str) -> bool:
    """Return whether an object is above another one, whose metadata these are."""
    first = controller_of(meta)
    # What controllers make is called after them, as in elastictorchjob-NAME-workers; others' owners
    # need not be read.
    if first is None or not (first.uid == uid or name in first.name):
        return False
    ref = OwnerRef("", "v1", kind, meta.namespace, meta.name, meta.uid)
    return any(one.ref.uid == uid for one in await walk.chain(Owner(ref=ref, controller=first)))


async def _why_none(client: Client, resource: Resource[Manifest], made: Manifest) -> str:
    """Return why an object has no pods, as far as it is seen, and what to do."""
    spec, meta = made.get("spec") or {}, made["metadata"]
    if how := has_ended(made):
        return f"it has ended ({how})"
    if spec.get("suspend") or (spec.get("runPolicy") or {}).get("suspend"):
        return "it is suspended"
    for key in _WANTED:
        if spec.get(key) == 0:
            return f"its spec.{key} is 0"
    # Of a Deployment it is its ReplicaSet that was refused: that has its name in its own.
    refused = await _refusals(client, meta["namespace"])
    if own := [one for one in refused if meta["name"] in one.name]:
        return max(own, key=lambda one: one.at).message
    if said := what_keeps(made):
        return said
    if resource.kind == "PodGroup":
        return "pods name it by their label scheduling.x-k8s.io/pod-group"
    word = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    return f"see 'kubectl describe {word} {meta['name']} -n {meta['namespace']}'"


def has_ended(made: Manifest) -> str:
    """Return how a Job or training job has ended, by its conditions; empty if it has not."""
    conditions = (made.get("status") or {}).get("conditions") or ()
    true = {one.get("type") for one in conditions if one.get("status") == "True"}
    return next((one for one in _OVER if one in true), "")


def what_keeps(made: Manifest) -> str:
    """Return why a training job has no workers yet, in its own words; empty if it does not say."""
    for one in (made.get("status") or {}).get("conditions") or ():
        if one.get("type") == _SCHEDULED and one.get("status") == "False":
            return str(one.get("message") or "")
    return ""


async def _refusals(client: Client, namespace: str) -> Sequence[CreationEvent]:
    """Return what the API server said when pods of a namespace were to be made."""
    where = "type=Warning,reason=FailedCreate"
    try:
        return (
            await client.list(EVENTS.typed(CreationEvent), namespace, field_selector=where)
        ).items
    except ApiError:  # whoever may not read events has the hint
        return ()


def _natural(name: str) -> list[str | int]:
    """Sort w-10 behind w-9; every other part is a number."""
    return [int(part) if part.isdigit() else part for part in _NUMBER.split(name)]
