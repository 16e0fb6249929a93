"""A cluster has again what a backup holds. All of it is tried first; then it is written.

What is there already stays as it is, unless it shall be as in the backup; nothing is deleted. So a
restore that was interrupted is finished by another one.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, Literal

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import AlreadyExists, ApiError
from alnair.kube.resources import NAMESPACES, Manifest, Resource
from alnair.live.backup.document import KINDS, LABELS, Backup, SavedLabel, SavedObject
from alnair.live.backup.taking import listed, saved_object
from alnair.model import names

#: Requests under way at once.
_AT_ONCE: Final = 16
#: In whose place a namespace that is not there yet is tried.
_STAND_IN: Final = "default"
#: What becomes of an object or a label.
Fate = Literal["created", "updated", "unchanged", "kept", "left out"]


class RefusedError(Exception):
    """The cluster cannot take the backup; a line per problem. Nothing was changed."""


class Wish(msgspec.Struct, frozen=True):
    """How to restore.

    Attributes:
        update: Make what is there and differs as it is in the backup.
        create_namespaces: Make those that are missing.
        dry_run: Try all, and write nothing.
    """

    update: bool = False
    create_namespaces: bool = False
    dry_run: bool = False


class _Step(msgspec.Struct, frozen=True):
    """One object or label, and what becomes of it."""

    it: SavedObject | SavedLabel
    fate: Fate
    present: Manifest | None


async def restore(
    client: Client, backup: Backup, wish: Wish, tell: Callable[[int, int], None] = lambda *_: None
) -> dict[Fate, list[str]]:
    """Restore a backup, and return what became of each object and label.

    Args:
        client: Of the cluster.
        backup: What to restore.
        wish: How.
        tell: Is told, with each object or label that is written, how many are, of how many.

    Returns:
        The names by what became of them: `kept` are those that are there and differ, `left out`
        are labels of nodes that are not there.

    Raises:
        RefusedError: Something of it cannot be; nothing was changed.
        KubeError: The cluster cannot be read, or stopped answering: do it again.
    """
    namespaces = {one["metadata"]["name"] for one in (await client.list(NAMESPACES)).items}
    wanted = {one.metadata.namespace for one in backup.objects}
    missing = sorted(wanted - namespaces)
    problems = []
    if missing and not wish.create_namespaces:
        problems.append(
            f"namespaces that are not there: {', '.join(missing)}: make them, or add"
            " --create-namespaces"
        )
    steps = [*await _of_objects(client, backup, wish, problems)]
    steps += await _of_labels(client, backup, wish, set(missing))
    problems += await _tried(client, steps, set(missing))
    if problems:
        raise RefusedError("\n".join(problems))
    writing = [step for step in steps if step.fate in ("created", "updated")]
    done = itertools.count(1)

    async def written(step: _Step) -> None:
        await _written(client, step)
        tell(next(done), len(writing))

    if not wish.dry_run:
        for name in missing:
            await client.create(NAMESPACES, {"metadata": {"name": name}})
        # One kind after the other: quotas are there before the gangs that they bind.
        for kind in (*KINDS, None):
            await _all(written(step) for step in writing if _kind(step) == kind)
    found: dict[Fate, list[str]] = {}
    for step in steps:
        found.setdefault(step.fate, []).append(step.it.called)
    return found


def _kind(step: _Step) -> tuple[str, str] | None:
    it = step.it
    return (it.api_version, it.kind) if isinstance(it, SavedObject) else None


async def _of_objects(
    client: Client, backup: Backup, wish: Wish, problems: list[str]
) -> list[_Step]:
    steps = []
    for kind, resource in KINDS.items():
        wanted = [one for one in backup.objects if (one.api_version, one.kind) == kind]
        if not wanted:
            continue
        found = await listed(client, resource)
        if found is None:
            problems.append(
                f"the kind {resource.plural}.{resource.group} is not installed, and the backup has"
                f" {len(wanted)} of it: install Alnair first (values crds.*)"
            )
            continue
        present = {(o["metadata"]["namespace"], o["metadata"]["name"]): o for o in found}
        for one in wanted:
            there = present.get((one.metadata.namespace, one.metadata.name))
            same = there is not None and saved_object(resource, there) == one
            steps.append(_Step(one, _fate(there is not None, same, wish), there))
    return steps


async def _of_labels(client: Client, backup: Backup, wish: Wish, coming: set[str]) -> list[_Step]:
    steps = []
    for kind, (resource, label) in LABELS.items():
        wanted = [one for one in backup.labels if one.kind == kind]
        found = (await client.list(resource)).items if wanted else []
        present = {o["metadata"]["name"]: o["metadata"].get("labels") or {} for o in found}
        for one in wanted:
            if one.name not in present and not (kind == NAMESPACES.kind and one.name in coming):
                steps.append(_Step(one, "left out", None))
                continue
            value = present.get(one.name, {}).get(label)
            steps.append(_Step(one, _fate(value is not None, value == one.value, wish), None))
    return steps


def _fate(is_there: bool, is_same: bool, wish: Wish) -> Fate:
    if not is_there:
        return "created"
    if is_same:
        return "unchanged"
    return "updated" if wish.update else "kept"


async def _tried(client: Client, steps: Iterable[_Step], missing: set[str]) -> list[str]:
    """What the API server has against the objects that would be written."""
    problems: list[str] = []

    async def attempt(step: _Step, one: SavedObject) -> None:
        namespace = one.metadata.namespace
        try:
            await _send(client, step, one, _STAND_IN if namespace in missing else namespace)
        except AlreadyExists:
            return  # another one of this name, in the place of the namespace that is to come
        except ApiError as error:
            if error.is_transient:
                raise
            problems.append(f"{one.called}: {error}")

    await _all(
        attempt(step, step.it)
        for step in steps
        if isinstance(step.it, SavedObject) and step.fate in ("created", "updated")
    )
    return sorted(problems)


async def _written(client: Client, step: _Step) -> None:
    it = step.it
    if isinstance(it, SavedLabel):
        resource, label = LABELS[it.kind]
        patch = {"metadata": {"labels": {label: it.value}}}
        await client.merge_patch(resource, it.name, patch)
        return
    try:
        await _send(client, step, it, it.metadata.namespace, dry_run=False)
    except AlreadyExists:
        return  # somebody made it meanwhile: it is kept, as what was there before


async def _send(
    client: Client, step: _Step, one: SavedObject, namespace: str, *, dry_run: bool = True
) -> None:
    resource: Resource[Manifest] = one.resource
    body: dict[str, Any] = msgspec.to_builtins(one)
    body["metadata"]["namespace"] = namespace
    query = {"dryRun": "All"} if dry_run else {}
    if step.present is None:
        path, method = resource.collection(namespace), "POST"
    else:
        path, method = resource.item(one.metadata.name, namespace), "PUT"
        body = _updated(step.present, body)
    await client.raw(method, path, query=query, body=msgspec.json.encode(body))


def _updated(present: Manifest, body: dict[str, Any]) -> dict[str, Any]:
    """The object as in the backup, with what is the API server's, and the plan of its gang."""
    metadata = {**present["metadata"], **body["metadata"]}
    plan = (present["metadata"].get("annotations") or {}).get(names.GANG_PLAN)
    if plan is not None:
        metadata["annotations"] = {**metadata["annotations"], names.GANG_PLAN: plan}
    return {**present, "metadata": metadata, "spec": body["spec"]}


async def _all(work: Iterable[Awaitable[None]]) -> None:
    """Awaits all, a few at a time; the first failure ends the others and is raised as it is."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(each: Awaitable[None]) -> None:
        async with room:
            await each

    try:
        async with asyncio.TaskGroup() as group:
            for each in work:
                group.create_task(one(each))
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
