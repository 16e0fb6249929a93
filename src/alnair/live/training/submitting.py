"""Submits a training job: everything is checked before anything is made."""

import asyncio
import contextlib
import time
from typing import Any, Final

import msgspec

from alnair.elastic.submission import Submission, job_manifest, script_manifest
from alnair.kube.client import Client
from alnair.kube.codec import encode
from alnair.kube.errors import ApiError, Conflict, Forbidden, KubeError, NotFound
from alnair.kube.resources import (
    CONFIGMAPS,
    NODES,
    PRIORITY_CLASSES,
    Manifest,
    Resource,
)
from alnair.live import namespaces
from alnair.live.training.finding import RESOURCES, JobError, at, is_installed
from alnair.model import names
from alnair.model.near_names import near
from alnair.model.plurals import counted
from alnair.model.training_job import TrainingJob

#: Seconds for a job that is replaced to be gone, with all that it consists of.
_GONE: Final = 120.0
_LOOK_AGAIN: Final = 0.5


class _NodeStatus(msgspec.Struct):
    allocatable: dict[str, str] = {}


class _NodeMetadata(msgspec.Struct):
    labels: dict[str, str] = {}


class _Node(msgspec.Struct):
    metadata: _NodeMetadata = msgspec.field(default_factory=_NodeMetadata)
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


class _Named(msgspec.Struct):
    metadata: dict[str, Any]


async def check(
    client: Client, namespace: str, wanted: Submission, *, replace: bool
) -> tuple[list[str], list[TrainingJob]]:
    """Refuse a job that could never be, and make nothing.

    Args:
        client: An open client.
        namespace: Of the job.
        wanted: The job.
        replace: One of this name may be there: it will be deleted.

    Returns:
        What the user should know though it is no fault; jobs of this name.

    Raises:
        JobError: What is wrong, and what to do.
        KubeError: The cluster cannot be read.
    """
    if unknown := await namespaces.unknown(client, namespace):
        raise JobError(f"{unknown} ('kubectl create namespace {namespace}' makes it)")
    there = await at(client, namespace, wanted.name, [*RESOURCES])
    if there and not replace:
        one = there[0]
        state = one.status.phase or "Pending"
        raise JobError(
            f"{one.kind} {wanted.name} is there already in namespace {namespace} ({state}): choose"
            " another --job, or give --replace, which deletes it first; 'alnair logs"
            f" {wanted.name} -f' follows it"
        )
    await _has_priority(client, wanted.priority_class)
    notes = await _fits_a_node(client, wanted)
    manifest = job_manifest(wanted)
    if there:
        # The name is taken until then, and as long as it may be.
        manifest["metadata"] = {"name": f"{wanted.name[:50]}-dry-run"}
    await _dry_run(client, RESOURCES[manifest["kind"]], manifest, namespace)
    script = script_manifest(wanted)
    if script is not None:
        script["metadata"]["name"] += "-dry-run"
        await _dry_run(client, CONFIGMAPS, script, namespace)
    return notes, there


async def submit(
    client: Client, namespace: str, wanted: Submission, there: list[TrainingJob]
) -> Manifest:
    """Make a job, after those of its name are gone; returns what the API server made of it.

    Raises:
        JobError: What was there does not go, or somebody else made one meanwhile.
        KubeError: The API server refuses it.
    """
    for job in there:
        await _delete(client, job)
    manifest, script = job_manifest(wanted), script_manifest(wanted)
    if script is not None:
        await _make_script(client, namespace, script)
    try:
        made = await client.create(_plain(manifest["kind"]), manifest, namespace)
    except BaseException as error:
        if script is not None:
            with contextlib.suppress(KubeError):
                await client.delete(CONFIGMAPS, script["metadata"]["name"], namespace)
        if isinstance(error, ApiError) and not error.is_transient:
            raise JobError(f"the API server refuses it: {error.message}") from None
        raise
    if script is not None:
        patch = {"metadata": {"ownerReferences": [_owner(made)]}}
        await client.merge_patch(CONFIGMAPS, script["metadata"]["name"], patch, namespace)
    return made


async def _make_script(client: Client, namespace: str, script: Manifest) -> None:
    """Make the ConfigMap; what an interrupted submission has left of that name goes."""
    name = script["metadata"]["name"]
    try:
        old = await client.get(CONFIGMAPS, name, namespace)
    except NotFound:
        old = None
    if old is not None:
        labels = old["metadata"].get("labels") or {}
        if old["metadata"].get("ownerReferences") or labels != script["metadata"]["labels"]:
            raise JobError(
                f"ConfigMap {name} of namespace {namespace} is there already, and the script would"
                " need the name: choose another --job"
            )
        await client.delete(CONFIGMAPS, name, namespace, uid=old["metadata"]["uid"])
    await client.create(CONFIGMAPS, script, namespace)


async def _delete(client: Client, job: TrainingJob) -> None:
    resource = RESOURCES[job.kind]
    with contextlib.suppress(NotFound, Conflict):
        await client.delete(
            resource, job.name, job.namespace, uid=job.uid, propagation="Foreground"
        )
    deadline = time.monotonic() + _GONE
    while await at(client, job.namespace, job.name, [job.kind]):
        if time.monotonic() > deadline:
            raise JobError(
                f"{job.kind} {job.name} is being deleted, and is still there after {_GONE:.0f} s:"
                f" look at its pods with 'kubectl get pods -n {job.namespace}'"
            )
        await asyncio.sleep(_LOOK_AGAIN)


async def _has_priority(client: Client, wanted: str | None) -> None:
    if wanted is None:
        return
    try:
        listed = (await client.list(PRIORITY_CLASSES.typed(_Named))).items
    except Forbidden:
        return
    known = [one.metadata["name"] for one in listed]
    if wanted not in known:
        alike = near(wanted, known) or tuple(sorted(known))
        raise JobError(f"there is no PriorityClass {wanted}: there are {', '.join(alike[:5])}")


async def _fits_a_node(client: Client, wanted: Submission) -> list[str]:
    """Refuse resources that no node has; note what no node has, or not enough of, now."""
    notes = []
    near_profiles = near(wanted.scheduler or "", names.SCHEDULERS)
    if near_profiles and wanted.scheduler not in names.SCHEDULERS:
        notes.append(f"{wanted.scheduler} is no profile of Alnair's; {near_profiles[0]} is")
    try:
        nodes = (await client.list(NODES.typed(_Node))).items
    except Forbidden:
        return notes
    known = {resource for node in nodes for resource in node.status.allocatable}
    for resource in wanted.resources:
        if nodes and resource not in known:
            offered = near(resource, known) or tuple(sorted(known))
            listed = ", ".join(offered[:8])
            raise JobError(f"no node has the resource {resource}: there are {listed}")
    sizes = [int(node.status.allocatable.get(names.GPU, "0")) for node in nodes]
    most = max(sizes, default=0)
    if wanted.gpus and most < wanted.gpus:
        text = (
            f"a worker has {counted(wanted.gpus, 'GPU')}, and the largest node {most}: "
            f"the job waits"
        )
        notes.append(f"{text} until there is one")
    elif wanted.gpus and (room := sum(size // wanted.gpus for size in sizes)) < wanted.least:
        notes.append(
            f"it needs {counted(wanted.least, 'worker')} at least, and if all GPUs were free there"
            f" would be room for {room}: the job waits until there are more"
        )
    models = {node.metadata.labels.get(names.GPU_MODEL_LABEL, "") for node in nodes} - {""}
    if wanted.gpu_types and models and models.isdisjoint(wanted.gpu_types):
        text = f"no node has GPUs of the model {' or '.join(wanted.gpu_types)}: there are"
        notes.append(f"{text} {', '.join(sorted(models)[:8])}")
    return notes


async def _dry_run(
    client: Client, resource: Resource[Any], manifest: Manifest, namespace: str
) -> None:
    """Have the API server judge an object without keeping it."""
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    try:
        path = resource.collection(namespace)
        await client.raw("POST", path, query=query, body=encode(manifest))
    except NotFound as error:
        is_installed(error)
        raise JobError(f"there is no namespace {namespace}: {error.message}") from None
    except Forbidden as error:
        raise JobError(f"you may not do that: {error.message}") from None
    except ApiError as error:
        if error.is_transient:
            raise
        raise JobError(f"the API server refuses it: {error.message}") from None


def _plain(kind: str) -> Resource[Manifest]:
    return RESOURCES[kind].typed(dict)


def _owner(job: Manifest) -> Manifest:
    return {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
