"""What Alnair needs in an API server: namespace, custom resources, permissions, policy."""

import asyncio
import contextlib
import functools
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import cast

import msgspec
import yaml

from alnair.kube.client import Client
from alnair.kube.crds.our_crds import DEFINITIONS, LEGACY_POD_GROUP
from alnair.kube.errors import Forbidden, Invalid, NotFound
from alnair.kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CRDS,
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    NAMESPACES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    VALIDATING_POLICIES,
    VALIDATING_POLICY_BINDINGS,
    Manifest,
    Resource,
)
from alnair.local.errors import LocalClusterError
from alnair.model.names import FIELD_MANAGER, NAMESPACE, VGPU, VGPU_COMPUTE, VGPU_MEMORY

#: How long something installed may take to come into force.
_IN_FORCE_SECONDS = 60.0
_FOLDER = Path(__file__).parent / "manifests"
#: Where both APIs of PodGroups are served, `kubectl get podgroup` means the legacy one.
_DEFINITIONS = tuple(one for one in DEFINITIONS if one is not LEGACY_POD_GROUP)
#: The first is rendered from charts/alnair: `make generate`.
_FILES = ("alnair.yaml", "kwok-rbac.yaml")
#: What the chart does not install.
BESIDE_THE_CHART = _FILES[1:]
#: The policy that is installed last: by it one sees that all are in force.
_REFUSING = "vgpu-requests.alnair"
#: Of what is of a release of Helm's.
_RELEASE = "meta.helm.sh/release-name"
_RIGHTS = (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS)
_RESOURCES: dict[tuple[str, str], Resource[Manifest]] = {
    (resource.api_version, resource.kind): resource
    for resource in (
        CLUSTER_ROLE_BINDINGS,
        CLUSTER_ROLES,
        CRDS,
        MUTATING_POLICIES,
        MUTATING_POLICY_BINDINGS,
        NAMESPACES,
        ROLE_BINDINGS,
        ROLES,
        VALIDATING_POLICIES,
        VALIDATING_POLICY_BINDINGS,
    )
}


#: The one in C takes a tenth of the time; it is missing where PyYAML was built without it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def documents(files: Sequence[str] = _FILES) -> list[Manifest]:
    """All manifests, in the order of installing."""
    found = [
        cast("Manifest", document)
        for name in files
        for document in yaml.load_all((_FOLDER / name).read_text(), Loader=_LOADER)
    ]
    return sorted(found, key=lambda one: _REFUSING in str(one["metadata"]["name"]))


async def leave_to_release(client: Client) -> None:
    """Remove rights that a former `up` gave and Helm's release, which is there, does not have.

    Args:
        client: Of the cluster's administrator.
    """
    for document in documents(_FILES[:1]):
        resource = _RESOURCES[document["apiVersion"], document["kind"]]
        if resource not in _RIGHTS:
            continue
        name, namespace = (document["metadata"].get(key) for key in ("name", "namespace"))
        with contextlib.suppress(NotFound):
            found = await client.get(resource, name, namespace)
            if _RELEASE not in found["metadata"].get("annotations", {}):
                await client.delete(resource, name, namespace)


async def install(client: Client, files: Sequence[str] = _FILES) -> None:
    """Has everything there as it should be; what is there already is left or set right.

    Args:
        client: Of the cluster's administrator.
        files: Which manifests.
    """
    for document in documents(files):
        resource = _RESOURCES[document["apiVersion"], document["kind"]]
        await client.apply(resource, document, field_manager=FIELD_MANAGER)


async def in_force(client: Client) -> None:
    """Waits for the moment that the API server takes to serve a new kind and to load a policy.

    Raises:
        LocalClusterError: It takes too long.
    """
    for definition in _DEFINITIONS:
        kind = f"{definition.plural}.{definition.group}"
        await _until(functools.partial(_is_served, client, kind), f"the kind {kind}")
    await _until(functools.partial(_is_admitting, client), "the admission policy vgpu.alnair")
    # The API server takes the policies that refuse over at once: where the last one does, all do.
    await _until(functools.partial(_is_refusing, client), f"the admission policy {_REFUSING}")


async def _until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    until = time.monotonic() + _IN_FORCE_SECONDS
    while not await holds():
        if time.monotonic() > until:
            raise LocalClusterError(
                f"{what} is installed but not in force after {_IN_FORCE_SECONDS:g} s:"
                " run the same command again"
            )
        await asyncio.sleep(0.05)


async def _is_served(client: Client, kind: str) -> bool:
    found = await client.get(CRDS, kind)
    # A kind that was made just now has no conditions: null, not an empty list.
    conditions = found.get("status", {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


async def _is_admitting(client: Client) -> bool:
    """Asks the API server what it would make of a pod with a part of a GPU."""
    try:
        answer = await _probe(client, {VGPU_MEMORY: "64"})
    except Forbidden:
        # The namespace's service account is not there yet; its controller has just been started.
        return False
    except Invalid:
        # The policies that refuse are in force before the one that completes the pod: the API
        # server loads the two kinds on their own.
        return False
    container = msgspec.json.decode(answer, type=_Pod).spec.containers[0]
    return container.resources.limits.get(VGPU) == "1"


async def _is_refusing(client: Client) -> bool:
    """Asks the API server for a pod that is to be refused."""
    try:
        await _probe(client, {VGPU_COMPUTE: "1"})
    except Invalid as error:
        return _REFUSING in str(error)
    return False


async def _probe(client: Client, limits: dict[str, str]) -> bytes:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "admission-probe"},
        "spec": {"containers": [{"name": "c", "image": "none", "resources": {"limits": limits}}]},
    }
    path, query = PODS.collection(NAMESPACE), {"dryRun": "All"}
    return await client.raw("POST", path, query=query, body=msgspec.json.encode(pod))


class _Resources(msgspec.Struct):
    limits: dict[str, str]


class _Container(msgspec.Struct):
    resources: _Resources


class _Spec(msgspec.Struct):
    containers: list[_Container]


class _Pod(msgspec.Struct):
    spec: _Spec
