"""The dialects of PodGroup, behind one adapter: which there are, and how each becomes a `Gang`.

`scheduling.x-k8s.io` and the older `scheduling.sigs.k8s.io` are CRDs. `scheduling.k8s.io` is
Kubernetes' own and young: it may be absent (1.36 and 1.37 have it off by default), and each release
renamed something. So it is looked for in what the API server serves, and only what all its versions
have in common is read.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from alnair.kube.client import Client
from alnair.kube.errors import ApiError, ConnectionFailed, NotFound
from alnair.kube.objects import wire
from alnair.kube.objects.amounts import base_units
from alnair.kube.objects.annotation_documents import UNREADABLE, check_version
from alnair.kube.pod_groups.gang_labels import (
    elastic_minimum,
    group_topology,
    topology_problem,
)
from alnair.kube.resources import LEGACY_PODGROUPS, PODGROUPS, Manifest, Resource, grouped
from alnair.kube.timestamps import timestamp
from alnair.model import api_types, names
from alnair.model.quantity import QuantityError
from alnair.model.workload import Gang, GangTopology, Planned
from alnair.scheduler.gangs.pod_group_status import was_placed

_log = logging.getLogger(__name__)

#: Seconds between questions whether the API server serves the native kind.
_DISCOVERY_SECONDS: Final = 300.0
NATIVE_GROUP: Final = "scheduling.k8s.io"
#: Versions of the native API that are understood, the one to use first.
_NATIVE_VERSIONS: Final = ("v1beta1", "v1alpha3", "v1alpha2")
NATIVE: Final = {
    version: grouped(NATIVE_GROUP, version, "podgroups", "PodGroup") for version in _NATIVE_VERSIONS
}
#: Every kind of PodGroup by its API version.
BY_API: Final[dict[str, Resource[Manifest]]] = {
    resource.api_version: resource for resource in (PODGROUPS, LEGACY_PODGROUPS, *NATIVE.values())
}
_plan_decoder = msgspec.json.Decoder(api_types.GangPlan)


class PodGroupSpecWire(Struct, rename="camel"):
    """Specification of a PodGroup that is a custom resource."""

    min_member: int | None = None
    min_resources: wire.Quantities | None = None
    schedule_timeout_seconds: int | None = None


class PodGroupWire(Struct):
    """A PodGroup that is a custom resource."""

    metadata: wire.ObjectMeta
    spec: PodGroupSpecWire | None = None
    status: api_types.PodGroupStatus | None = None


class GangPolicy(Struct, rename="camel"):
    """All or nothing, of so many pods."""

    min_count: int | None = None


class SchedulingPolicy(Struct):
    """How the native API's groups are scheduled; without `gang`, pod by pod."""

    gang: GangPolicy | None = None


class TopologyConstraint(Struct):
    """A node label in one of whose domains all pods must lie."""

    key: str = ""


class SchedulingConstraints(Struct):
    """Where a native group may go."""

    topology: list[TopologyConstraint] | None = None


class NativeSpecWire(Struct, rename="camel"):
    """Specification of a native PodGroup."""

    scheduling_policy: SchedulingPolicy | None = None
    scheduling_constraints: SchedulingConstraints | None = None


class NativeStatusWire(Struct):
    """Status of a native PodGroup."""

    conditions: list[api_types.Condition] | None = None


class NativeWire(Struct):
    """A native PodGroup."""

    metadata: wire.ObjectMeta
    spec: NativeSpecWire | None = None
    status: NativeStatusWire | None = None


class GangProjector:
    """Projects PodGroups of one API that is a custom resource."""

    def __init__(self, api_version: str) -> None:
        self.api_version = api_version

    def __call__(self, group: PodGroupWire) -> Gang:
        """Return the gang; an unreadable plan counts as none."""
        spec = group.spec or PodGroupSpecWire()
        problem = ""
        minimum: tuple[tuple[str, int], ...] = ()
        try:
            minimum = tuple(sorted(base_units(spec.min_resources).items()))
        except QuantityError as error:
            problem = f"spec.minResources: {error}"
        return _gang(
            group.metadata,
            self.api_version,
            max(spec.min_member or 1, 1),
            timeout_seconds=spec.schedule_timeout_seconds or 60,
            min_resources=minimum,
            problem=problem,
            placed=group.status is not None and was_placed(group.status),
        )


class NativeProjector:
    """Projects PodGroups of one version of the native API."""

    def __init__(self, api_version: str) -> None:
        self.api_version = api_version

    def __call__(self, group: NativeWire) -> Gang:
        """Return the gang; of a group with the policy `basic`, each pod is on its own."""
        spec = group.spec or NativeSpecWire()
        policy = spec.scheduling_policy
        minimum = policy.gang.min_count if policy and policy.gang else None
        constraints = spec.scheduling_constraints
        keys = [c.key for c in (constraints.topology if constraints else None) or () if c.key]
        conditions = group.status.conditions if group.status else None
        placed = was_placed(api_types.PodGroupStatus(conditions=conditions))
        gang = _gang(group.metadata, self.api_version, max(minimum or 1, 1), placed=placed)
        if not keys:
            return gang
        preferred = gang.topology.preferred if gang.topology else ()
        return msgspec.structs.replace(gang, topology=GangTopology(keys[0], preferred))


class Dialect(Struct, frozen=True):
    """One kind of PodGroup that is there to be read."""

    resource: Resource[Any]
    project: Callable[[Any], Gang]


CUSTOM: Final = tuple(
    Dialect(resource.typed(PodGroupWire), GangProjector(resource.api_version))
    for resource in (PODGROUPS, LEGACY_PODGROUPS)
)


async def native(client: Client, absent: Callable[[], None]) -> Dialect:
    """Wait until the API server serves a native dialect that is understood; most never do.

    Args:
        client: an open client.
        absent: called each time when it is known, or cannot be told, that there is none now.
    """
    while True:
        try:
            found = await _served(client)
        except (ApiError, ConnectionFailed) as error:
            _log.warning("whether there are native PodGroups is unknown: %s", error)
            found = None
        if found is not None:
            return found
        absent()
        await asyncio.sleep(_DISCOVERY_SECONDS)


async def _served(client: Client) -> Dialect | None:
    for resource in NATIVE.values():
        try:
            answer = await client.raw("GET", f"/apis/{resource.api_version}")
        except NotFound:
            continue
        served = msgspec.json.decode(answer, type=_ResourceList).resources
        if any(one.name == resource.plural for one in served):
            return Dialect(resource.typed(NativeWire), NativeProjector(resource.api_version))
    return None


class _Served(Struct):
    name: str


class _ResourceList(Struct):
    resources: list[_Served] = []


def _gang(
    meta: wire.ObjectMeta,
    api_version: str,
    min_member: int,
    *,
    timeout_seconds: int = 60,
    min_resources: tuple[tuple[str, int], ...] = (),
    problem: str = "",
    placed: bool = False,
) -> Gang:
    annotations = meta.annotations or {}
    elastic_min, wrong = elastic_minimum(annotations)
    plan: dict[str, Planned] = {}
    planned = 0.0
    if text := annotations.get(names.GANG_PLAN):
        try:
            document = _plan_decoder.decode(text)
            check_version(document.v)
        except UNREADABLE:
            pass  # members on their nodes are counted all the same
        else:
            plan = {name: (p.node, p.gpus) for name, p in document.pods.items()}
            planned = timestamp(document.t)
    return Gang(
        namespace=meta.namespace,
        name=meta.name,
        min_member=min_member,
        created=timestamp(meta.creation_timestamp),
        timeout_seconds=timeout_seconds,
        api=api_version,
        min_resources=min_resources,
        topology=group_topology(annotations),
        problem=problem or wrong or topology_problem(annotations, names.TOPOLOGY_REQUIRED),
        plan=plan,
        planned=planned,
        elastic_min=elastic_min,
        placed=placed and elastic_min > 0,
    )
