"""Everything that an API server has, so that what comes and goes can be told."""

import json
from typing import Any

from alnair.kube.client import Client
from alnair.kube.errors import NotFound

#: What comes and goes by itself.
_RESTLESS = {"Event", "Lease", "ReplicaSet", "ControllerRevision", "EndpointSlice", "Endpoints"}


async def all_objects(client: Client) -> dict[str, Any]:
    """Each object's labels, by `KIND NAMESPACE/NAME`; without those that come by themselves."""
    found: dict[str, Any] = {}
    for path in await _collections(client):
        try:
            listed = json.loads(await client.raw("GET", path))
        except NotFound:
            continue  # its kind went meanwhile, and all of it
        for item in listed["items"]:
            kind = listed["kind"].removesuffix("List")
            metadata = item["metadata"]
            name = f"{metadata.get('namespace', '')}/{metadata['name']}"
            if kind not in _RESTLESS and metadata.get("namespace") != "kube-node-lease":
                found[f"{kind} {name}"] = metadata.get("labels", {})
    return found


async def _collections(client: Client) -> list[str]:
    groups = json.loads(await client.raw("GET", "/apis"))["groups"]
    versions = ["/api/v1", *(f"/apis/{one['preferredVersion']['groupVersion']}" for one in groups)]
    paths = []
    for version in versions:
        try:
            resources = json.loads(await client.raw("GET", version))["resources"]
        except NotFound:
            continue  # the list of groups is a moment older
        paths += [
            f"{version}/{one['name']}"
            for one in resources
            if "list" in one["verbs"] and "/" not in one["name"]
        ]
    return paths
