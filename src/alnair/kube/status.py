"""Writes the status of objects, so that no other object of the name and no newer state is hit."""

import time
from typing import Any

import msgspec

from alnair.kube.client import STRATEGIC_MERGE, Client
from alnair.kube.objects.annotations import rfc3339
from alnair.kube.resources import PODS, Resource


def condition(kind: str, *, is_true: bool, reason: str, message: str) -> dict[str, str]:
    """Return a condition as of now, as Kubernetes writes it; `reason` is a CamelCase word."""
    return {
        "type": kind,
        "status": "True" if is_true else "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": rfc3339(time.time()),
    }


async def patch_pod_status(
    client: Client, namespace: str, name: str, uid: str, status: dict[str, Any]
) -> bytes:
    """Change fields of a pod's status; conditions are merged by type.

    Returns:
        The pod as it is then, in JSON.

    Raises:
        NotFound: The pod is gone.
        Conflict: Another pod has its name by now.
    """
    # The uid makes the server refuse the patch if another pod has the name.
    patch = {"metadata": {"uid": uid}, "status": status}
    return await client.raw(
        "PATCH",
        PODS.item(name, namespace, "status"),
        body=msgspec.json.encode(patch),
        content_type=STRATEGIC_MERGE,
    )


def replacing(before: msgspec.Struct, after: msgspec.Struct) -> dict[str, Any]:
    """Return the merge patch that makes a status another one.

    A field that is left out of a merge patch stays as it is, so what is not true any more is named
    in it, as null.
    """
    old, new = msgspec.to_builtins(before), msgspec.to_builtins(after)
    return {**dict.fromkeys(old.keys() - new.keys()), **new}


async def patch_status_of_version(
    client: Client,
    resource: Resource[Any],
    name: str,
    namespace: str,
    version: str,
    status: dict[str, Any],
) -> None:
    """Change fields of a custom resource's status, if it is still the version that was read.

    Raises:
        NotFound: It is gone.
        Conflict: It is another version by now.
    """
    patch = {"metadata": {"resourceVersion": version}, "status": status}
    await client.merge_patch(resource, name, patch, namespace, subresource="status")
