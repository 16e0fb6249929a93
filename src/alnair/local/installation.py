"""What Alnair needs in an API server: namespace, custom resources, permissions, policy."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import yaml

from alnair.kube.client import Client
from alnair.kube.crd import crd
from alnair.kube.definitions import DEFINITIONS
from alnair.kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CRDS,
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    Manifest,
    Resource,
)
from alnair.model.names import FIELD_MANAGER

_FOLDER = Path(__file__).parent / "manifests"
#: In the order of installing.
_FILES = ("namespace.yaml", "scheduler-rbac.yaml", "kwok-rbac.yaml", "vgpu-admission.yaml")
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
    )
}


def documents() -> Iterator[Manifest]:
    """All manifests, in the order of installing."""
    for name in _FILES:
        for document in yaml.safe_load_all((_FOLDER / name).read_text()):
            yield cast("Manifest", document)
    for definition in DEFINITIONS:
        yield crd(definition)


async def install(client: Client) -> None:
    """Has everything there as it should be; what is there already is left or set right."""
    for document in documents():
        resource = _RESOURCES[document["apiVersion"], document["kind"]]
        await client.apply(resource, document, field_manager=FIELD_MANAGER)
