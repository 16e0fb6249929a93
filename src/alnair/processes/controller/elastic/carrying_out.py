"""Carries out what was decided on a training job, by server-side apply under a name of its own.

Every object belongs to the job, so that Kubernetes deletes it with the job.
"""

import asyncio
import contextlib
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Final

import msgspec

from alnair.elastic import supporting_objects
from alnair.elastic.child_names import child_names
from alnair.elastic.desired import Child, Desired, Resize
from alnair.elastic.pod_templates import Manifest
from alnair.elastic.troubles import Trouble, refused_pods, trouble
from alnair.kube.client import Client
from alnair.kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
)
from alnair.kube.objects.wire import ObjectMeta
from alnair.kube.resources import (
    CONFIGMAPS,
    JOBS,
    NETWORK_POLICIES,
    PODGROUPS,
    PODS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from alnair.model import names
from alnair.model.elastic_types import JobStatus
from alnair.model.training_job import TrainingJob
from alnair.processes.controller.elastic import migrating
from alnair.processes.controller.elastic.applied import Applied, child_of, noted
from alnair.processes.controller.elastic.cache import RESOURCES
from alnair.processes.controller.elastic.ssh_keys import draw_keys

_KINDS: Final[dict[str, Resource[Any]]] = {
    one.kind: one
    for one in (CONFIGMAPS, JOBS, NETWORK_POLICIES, PODGROUPS, SECRETS, SERVICES, STATEFUL_SETS)
}
#: Fields by which each kind says how many pods it makes.
_SIZES: Final = {"StatefulSet": ("replicas",), "Job": ("parallelism", "completions")}


class NameTakenError(KubeError):
    """An object of the name that a job needs is there, and is not the job's."""


class LeftBehindError(KubeError):
    """An object of a former job of the name was there, and is being deleted: to be tried again."""


class PodsRefusedError(KubeError):
    """The API server takes no such pods, as long as the job says that they shall be so.

    Attributes:
        role: `worker` or `launcher`: whose they are.
    """

    def __init__(self, role: str, message: str) -> None:
        super().__init__(message)
        self.role = role


async def carry_out(
    client: Client, job: TrainingJob, done: Desired, applied: Applied
) -> Mapping[Child, float]:
    """Do what was decided; what was done is not undone if something fails in between.

    Returns:
        What was written so shortly before that it is put off, and for how many seconds.

    Raises:
        KubeError: The API server refuses something; all of it can be tried again.
    """
    put_off = await _delete(client, job, done.delete, applied)
    applied.look(done.apply, done.changed)
    # What the pods need is made at once; the pods after all of it, the gang above all.
    before = []
    for one in filter(applied.differs, done.apply):
        if wait := applied.wait(one):
            put_off[child_of(one)] = wait
        else:
            before.append(_apply(client, job, one, applied))
    if done.keys and not applied.keys:
        before.append(_draw_keys(client, job, applied))
    await _all(before)
    hosts_late = max((s for child, s in put_off.items() if child.kind == "ConfigMap"), default=0.0)
    for manifest in done.create:
        if hosts_late and manifest["kind"] == "Job":
            # The launcher says which hosts it has found at its start.
            put_off[child_of(manifest)] = hosts_late
            continue
        if wait := applied.may("create", child_of(manifest)):
            put_off[child_of(manifest)] = wait
            continue
        if manifest is done.create[0]:
            for other in done.tried:
                await _create(client, job, other, dry_run=True)
        applied.writes["create"] += 1
        await _create(client, job, manifest)
    if done.resize is not None:
        await _resize(client, job, done.resize, applied, put_off)
    await migrating.carry_out(client, job.namespace, done)
    if done.tell is not None and not hosts_late:
        await _tell(client, job, done.tell, applied, put_off)
    return put_off


async def _delete(
    client: Client, job: TrainingJob, children: Iterable[Child], applied: Applied
) -> dict[Child, float]:
    """Delete objects, and return those whose deletion was asked for just before."""
    put_off = {}
    for child in children:
        applied.forget(child)
        if wait := applied.may("delete", child):
            put_off[child] = wait
            continue
        applied.writes["delete"] += 1
        with contextlib.suppress(NotFound):
            kind = _KINDS[child.kind]
            await client.delete(kind, child.name, job.namespace, propagation="Background")
    return put_off


async def _resize(
    client: Client, job: TrainingJob, resize: Resize, applied: Applied, put_off: dict[Child, float]
) -> None:
    child = resize.child
    if wait := applied.may("resize", child):
        put_off[child] = wait
        return
    applied.writes["patch"] += 1
    spec: Manifest = dict.fromkeys(_SIZES[child.kind], resize.size)
    await client.merge_patch(_KINDS[child.kind], child.name, {"spec": spec}, job.namespace)


async def _tell(
    client: Client,
    job: TrainingJob,
    tell: tuple[str, str],
    applied: Applied,
    put_off: dict[Child, float],
) -> None:
    """Have the launcher's kubelet bring the hosts, which the ConfigMap lists by now."""
    pod, hosts = tell
    if wait := applied.may("tell", pod):
        put_off[Child("Pod", pod)] = wait
        return
    applied.writes["patch"] += 1
    patch = {"metadata": {"annotations": {names.HOSTS_SEEN: hosts}}}
    await client.merge_patch(PODS, pod, patch, job.namespace)


async def write_status(client: Client, job: TrainingJob, status: JobStatus) -> None:
    """Write the status.

    Raises:
        KubeError: The API server refuses it.
    """
    resource = RESOURCES[job.kind]
    body: Manifest = {
        "apiVersion": resource.api_version,
        "kind": job.kind,
        "metadata": {"name": job.name, "namespace": job.namespace, "uid": job.uid},
        "status": msgspec.to_builtins(status),
    }
    await client.apply(resource, body, field_manager=names.CONTROLLER_ELASTIC, subresource="status")


async def _create(
    client: Client, job: TrainingJob, manifest: Manifest, *, dry_run: bool = False
) -> None:
    kind = _KINDS[manifest["kind"]]
    # What its user misspelt within a pod's fields must not be left out in silence.
    has_pods = kind in (STATEFUL_SETS, JOBS)
    try:
        made = owned(job, manifest)
        await client.create(kind, made, job.namespace, strict=has_pods, dry_run=dry_run)
    except AlreadyExists:
        if kind is not SECRETS:  # whose names are nobody else's
            await _check_owner(client, job, manifest)
    except (BadRequest, Invalid) as error:
        if not has_pods:
            raise
        raise PodsRefusedError(manifest["metadata"]["labels"]["role"], error.message) from error


async def _apply(client: Client, job: TrainingJob, manifest: Manifest, applied: Applied) -> None:
    """Apply; what others have changed of our own object we take back, and nobody else's."""

    async def apply(*, force: bool) -> None:
        applied.writes["apply"] += 1
        await client.apply(
            _KINDS[manifest["kind"]],
            owned(job, noted(manifest)),
            namespace=job.namespace,
            field_manager=names.CONTROLLER_ELASTIC,
            force=force,
        )

    try:
        try:
            await apply(force=False)
        except Conflict:
            await _check_owner(client, job, manifest)
            await apply(force=True)
    except ApiError as error:
        if not error.is_transient:
            applied.note_refused(manifest)
        raise
    applied.note(manifest)


async def _draw_keys(client: Client, job: TrainingJob, applied: Applied) -> None:
    applied.writes["create"] += 1
    # Nobody needs to read it: that there is one is all that is asked.
    await _create(client, job, supporting_objects.secret(job, child_names(job), draw_keys()))
    applied.keys = True


async def _all(requests: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Make requests side by side; raises the first error when all have ended."""
    for result in await asyncio.gather(*requests, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


async def _check_owner(client: Client, job: TrainingJob, manifest: Manifest) -> None:
    kind, name = _KINDS[manifest["kind"]], manifest["metadata"]["name"]
    found = await client.get(kind.typed(_Owned), name, job.namespace)
    meta = found.metadata
    owners = meta.owner_references or ()
    if any(one.uid == job.uid for one in owners):
        return
    is_namesakes = any((one.kind, one.name) == (job.kind, job.name) for one in owners)
    if kind in (STATEFUL_SETS, JOBS) and is_namesakes and await _is_there(client, job):
        # Kubernetes deletes it, but for when it has missed that the former job is gone (`orphans`).
        await client.delete(kind, name, job.namespace, uid=meta.uid, propagation="Background")
        raise LeftBehindError(f"{kind.kind} {name} of a former {job.kind} {job.name} is deleted")
    raise NameTakenError(
        f"{kind.kind} {name} is there and is not of this {job.kind}: delete it, or give the"
        " job another name"
    )


async def _is_there(client: Client, job: TrainingJob) -> bool:
    """Whether the job is the one of its name now, and so any other that had the name is no more.

    Times tell less, whole seconds as they are: a job that was deleted and made anew within one
    would be taken for the former one by who still knows only the first.
    """
    which = f"metadata.name={job.name}"
    kind = RESOURCES[job.kind].typed(_Owned)
    found = await client.list(kind, job.namespace, field_selector=which)
    return any(one.metadata.uid == job.uid for one in found.items)


def refusal(error: KubeError) -> Trouble | None:
    """Return what the user must know of an error; None if it will pass, or is not theirs."""
    if isinstance(error, NameTakenError):
        return Trouble("NameTaken", str(error))
    if isinstance(error, PodsRefusedError):
        return refused_pods(str(error), error.role)
    if isinstance(error, Forbidden) and " cannot " in error.message:
        return None  # for want of rights of ours, as a server says that has just been started
    if isinstance(error, Forbidden | Invalid):
        return trouble(f"Refused: {error.message}", "worker")
    return None


def owned(job: TrainingJob, manifest: Manifest) -> Manifest:
    """Return the manifest of an object that belongs to a job."""
    owner = {
        "apiVersion": RESOURCES[job.kind].api_version,
        "kind": job.kind,
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {**manifest["metadata"], "namespace": job.namespace, "ownerReferences": [owner]}
    return {**manifest, "metadata": metadata}


class _Owned(msgspec.Struct):
    metadata: ObjectMeta
