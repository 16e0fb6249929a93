"""A backup of a cluster: reads, and changes nothing."""

import datetime as dt
from importlib.metadata import version

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.resources import Manifest, Resource
from alnair.live.backup.document import (
    API_VERSION,
    KINDS,
    LABELS,
    Backup,
    Metadata,
    SavedLabel,
    SavedObject,
)
from alnair.model import names


class Taken(msgspec.Struct, frozen=True):
    """A backup, and what is not in it.

    Attributes:
        backup: What is in it.
        owned: Objects that a controller made, and will make again with what owns them.
        absent: Kinds that the cluster does not have.
    """

    backup: Backup
    owned: list[str]
    absent: list[str]


async def take(client: Client, server: str, now: dt.datetime) -> Taken:
    """Return a backup of the cluster.

    Args:
        client: May list the kinds of `document.KINDS`, nodes and namespaces.
        server: Of the cluster; for people.
        now: The time.

    Raises:
        KubeError: The cluster cannot be read.
    """
    objects: list[SavedObject] = []
    owned: list[str] = []
    absent: list[str] = []
    for resource in KINDS.values():
        found = await listed(client, resource)
        if found is None:
            absent.append(f"{resource.plural}.{resource.group}")
            continue
        for one in found:
            saved = saved_object(resource, one)
            owners = one["metadata"].get("ownerReferences", ())
            if any(owner.get("controller") for owner in owners):
                owned.append(saved.called)
            else:
                objects.append(saved)
    labels = []
    for kind, (of, label) in LABELS.items():
        for one in (await client.list(of, label_selector=label)).items:
            metadata = one["metadata"]
            labels.append(SavedLabel(kind, metadata["name"], metadata["labels"][label]))  # type: ignore[arg-type]
    backup = Backup(
        API_VERSION,
        "Backup",
        now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        server,
        version("alnair"),
        objects,
        labels,
    )
    return Taken(backup, owned, absent)


async def listed(client: Client, resource: Resource[Manifest]) -> list[Manifest] | None:
    """Return all objects of a kind; None: the cluster does not have the kind."""
    try:
        return (await client.list(resource)).items
    except NotFound:
        return None


def saved_object(resource: Resource[Manifest], found: Manifest) -> SavedObject:
    """Return what is kept of an object: what people wrote, and neither status nor plan."""
    metadata = found["metadata"]
    annotations = dict(metadata.get("annotations") or {})
    # A plan is of pods and nodes of the moment, and the scheduler's.
    annotations.pop(names.GANG_PLAN, None)
    return SavedObject(
        resource.api_version,
        resource.kind,
        Metadata(
            metadata["name"], metadata["namespace"], dict(metadata.get("labels") or {}), annotations
        ),
        found.get("spec") or {},
    )
