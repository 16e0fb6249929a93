"""Generated CRDs are taken by a real API server, and mean what the types say."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

import msgspec
import pytest

from alnair.kube import errors
from alnair.kube.client import Client
from alnair.kube.crds.manifests import AGE, Column, CrdDefinition, Rule, Scale, crd
from alnair.kube.resources import CRDS, Manifest


class Part(msgspec.Struct, rename="camel"):
    """One part."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    amount: str | int = 1


Parts = Annotated[
    list[Part],
    msgspec.Meta(
        max_length=3,
        extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    ),
]


class GadgetSpec(msgspec.Struct, rename="camel"):
    min_replicas: Annotated[int, msgspec.Meta(ge=1, le=100)]
    max_replicas: Annotated[int, msgspec.Meta(ge=1, le=100)] | None = None
    mode: Literal["pack", "spread"] = "pack"
    parts: Parts | None = None
    free: dict[str, Any] | None = None


class GadgetStatus(msgspec.Struct, rename="camel"):
    phase: str | None = None
    replicas: int | None = None


GADGETS = CrdDefinition(
    group="test.alnair.io",
    version="v1alpha1",
    kind="Gadget",
    plural="gadgets",
    spec=GadgetSpec,
    status=GadgetStatus,
    short_names=("gg",),
    columns=(Column("Phase", ".status.phase"), AGE),
    rules=(
        Rule(
            "!has(self.spec.maxReplicas) || self.spec.maxReplicas >= self.spec.minReplicas",
            "maxReplicas must not be less than minReplicas",
        ),
    ),
    scale=Scale(".spec.minReplicas", ".status.replicas"),
)


def gadget(**spec: object) -> Manifest:
    return {
        "apiVersion": "test.alnair.io/v1alpha1",
        "kind": "Gadget",
        "metadata": {"name": "g"},
        "spec": spec,
    }


@pytest.fixture
async def installed(client: Client) -> CrdDefinition:
    await client.apply(CRDS, crd(GADGETS), field_manager="alnair-test")
    async with asyncio.timeout(20):
        while True:
            manifest = await client.get(CRDS, GADGETS.name)
            conditions = {
                one["type"]: one["status"]
                for one in manifest.get("status", {}).get("conditions") or ()
            }
            if conditions.get("Established") == "True":
                with contextlib.suppress(errors.NotFound):  # it may be served a moment later
                    await client.list(GADGETS.resource(), "default")
                    break
            await asyncio.sleep(0.1)
    assert "NonStructuralSchema" not in conditions
    return GADGETS


async def test_objects_are_validated_defaulted_and_pruned(
    client: Client, installed: CrdDefinition, make_namespace: Callable[[], Awaitable[str]]
) -> None:
    namespace = await make_namespace()
    gadgets = installed.resource()
    parts = [{"name": "a", "amount": "1500m"}, {"name": "b"}]
    made = await client.create(
        gadgets,
        gadget(minReplicas=2, parts=parts, free={"any": [1, {"x": "y"}]}, unknown=1),
        namespace,
    )
    assert made["spec"] == {
        "minReplicas": 2,
        "mode": "pack",
        "parts": [{"name": "a", "amount": "1500m"}, {"name": "b", "amount": 1}],
        "free": {"any": [1, {"x": "y"}]},
    }
    status = {"status": {"phase": "Ready", "replicas": 2}}
    assert "status" not in await client.merge_patch(gadgets, "g", status, namespace)
    patched = await client.merge_patch(gadgets, "g", status, namespace, subresource="status")
    assert patched["status"] == {"phase": "Ready", "replicas": 2}
    scale = await client.get(gadgets, "g", namespace, subresource="scale")
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (2, 2)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec.minReplicas"),
        ({"minReplicas": 0}, "spec.minReplicas"),
        ({"minReplicas": 1, "mode": "other"}, "spec.mode"),
        ({"minReplicas": 1, "parts": [{"name": ""}]}, "spec.parts[0].name"),
        ({"minReplicas": 1, "parts": [{"name": "a"}, {"name": "a"}]}, "spec.parts[1]"),
        ({"minReplicas": 1, "parts": [{"name": "a", "amount": 1.5}]}, "spec.parts[0].amount"),
    ],
)
async def test_a_bad_object_is_refused_at_its_field(
    client: Client, installed: CrdDefinition, spec: dict[str, object], field: str
) -> None:
    with pytest.raises(errors.Invalid) as caught:
        await client.create(installed.resource(), gadget(**spec), "default")
    assert caught.value.details is not None
    assert field in [cause.field for cause in caught.value.details.causes]


async def test_a_rule_is_told_in_its_words(client: Client, installed: CrdDefinition) -> None:
    with pytest.raises(errors.Invalid, match="maxReplicas must not be less than minReplicas"):
        await client.create(installed.resource(), gadget(minReplicas=3, maxReplicas=2), "default")
