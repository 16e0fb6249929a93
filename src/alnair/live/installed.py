"""Alnair as pods of a cluster: which components there are, and how each is."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.resources import DAEMON_SETS, DEPLOYMENTS, LEASES, PODS, Manifest
from alnair.model import names

_SELECTOR: Final = "app.kubernetes.io/name=alnair"
_COMPONENT: Final = "app.kubernetes.io/component"
#: Components of which one leads, by a lease of this name.
_LEADING: Final = (names.SCHEDULER, names.CONTROLLER)


class InstalledComponent(msgspec.Struct, frozen=True):
    """One Deployment or DaemonSet.

    Attributes:
        name: Such as alnair-scheduler.
        ready: Pods that are ready.
        wanted: Pods that there shall be; of the agent, nodes that shall have one.
        versions: Tags or digests of the images that run, the one that shall be first; several
            while an upgrade is under way.
        leader: The pod that leads; empty where none does, or none of the component needs to.
        restarts: Of all containers of the pods that stay.
        problem: Why it is not well; empty: it is.
    """

    name: str
    ready: int
    wanted: int
    versions: list[str]
    leader: str
    restarts: int
    problem: str


async def installed(client: Client) -> list[InstalledComponent]:
    """Return what is installed, by name; nothing where Alnair runs as no pods.

    Raises:
        KubeError: The cluster cannot be read, or it is not allowed.
    """
    where = names.NAMESPACE
    deployments = (await client.list(DEPLOYMENTS, where, label_selector=_SELECTOR)).items
    daemon_sets = (await client.list(DAEMON_SETS, where, label_selector=_SELECTOR)).items
    if not (deployments or daemon_sets):
        return []
    pods = (await client.list(PODS, where, label_selector=_SELECTOR)).items
    leases = (await client.list(LEASES, where)).items
    return components([*deployments, *daemon_sets], pods, leases)


def components(
    workloads: Iterable[Manifest], pods: Sequence[Manifest], leases: Iterable[Manifest]
) -> list[InstalledComponent]:
    """Return what Deployments and DaemonSets, their pods and the leases say, by name."""
    holders = {one["metadata"]["name"]: _holder(one) for one in leases}
    return sorted((_component(one, pods, holders) for one in workloads), key=lambda one: one.name)


def _holder(lease: Manifest) -> str:
    return (lease.get("spec") or {}).get("holderIdentity") or ""


def _component(
    workload: Manifest, pods: Sequence[Manifest], holders: dict[str, str]
) -> InstalledComponent:
    name = workload["metadata"]["name"]
    label = workload["metadata"]["labels"].get(_COMPONENT)
    of = [
        one
        for one in pods
        if one["metadata"]["labels"].get(_COMPONENT) == label and not _has_ended(one)
    ]
    stay = [one for one in of if "deletionTimestamp" not in one["metadata"]]
    status = workload.get("status", {})
    wanted = workload["spec"].get("replicas", status.get("desiredNumberScheduled", 0))
    ready = status.get("readyReplicas", status.get("numberReady", 0))
    shall_be = [_tag(one["image"]) for one in workload["spec"]["template"]["spec"]["containers"]]
    run = sorted({_tag(one["image"]) for pod in of for one in pod["spec"]["containers"]})
    leader = holders.get(name, "") if name in _LEADING else ""
    restarts = sum(one.get("restartCount", 0) for pod in stay for one in _containers(pod))
    problem = _problem(ready, wanted, stay)
    if not problem and name in _LEADING and wanted and leader not in map(_name, of):
        problem = f"{leader} leads, which is no pod of it" if leader else "none leads"
    return InstalledComponent(
        name, ready, wanted, list(dict.fromkeys((*shall_be, *run))), leader, restarts, problem
    )


def _problem(ready: int, wanted: int, pods: Iterable[Manifest]) -> str:
    if ready >= wanted:
        return ""
    reason = next((said for pod in pods for said in _reasons(pod)), "")
    return f"{ready} of {wanted} ready" + (f": {reason}" if reason else "")


def _reasons(pod: Manifest) -> Iterator[str]:
    """Why a pod does not get ready, in words of its own."""
    name = pod["metadata"]["name"]
    for container in _containers(pod):
        waiting = container.get("state", {}).get("waiting", {})
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            yield f"{name}: {waiting['reason']} {waiting.get('message', '')}".rstrip()
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            yield f"{name}: {condition.get('message') or condition.get('reason', '')}"


def _has_ended(pod: Manifest) -> bool:
    """An evicted pod, for one, stays to be looked at."""
    return pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}


def _containers(pod: Manifest) -> list[Any]:
    return pod.get("status", {}).get("containerStatuses") or []


def _name(pod: Manifest) -> str:
    name: str = pod["metadata"]["name"]
    return name


def _tag(image: str) -> str:
    """The tag of an image's name, or its digest."""
    name, at, digest = image.partition("@")
    return digest if at else name.rpartition("/")[2].partition(":")[2] or "latest"
