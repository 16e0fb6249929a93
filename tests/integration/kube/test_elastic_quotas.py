"""ElasticQuotas at a real API server: mistakes are refused in words that say what to write."""

import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from alnair.kube import errors
from alnair.kube.client import Client
from alnair.kube.crds.manifests import CrdDefinition, crd
from alnair.kube.crds.our_crds import ELASTIC_QUOTA
from alnair.kube.resources import CRDS, ELASTIC_QUOTAS, Manifest
from kit.live.scheduler_process import eventually

NO_AMOUNT = "is no amount: write a number of 0 or more with an optional suffix"
NO_NAME = "is nothing that pods request: write a resource's own name, such as cpu"
WHOLE = "is counted in whole numbers"
MIB = "counts MiB, and the least slice is 64: write 8192 for 8 GiB"

#: What is wrong, the spec, and what is said.
INVALID: list[tuple[str, dict[str, Any], str]] = [
    (
        "min above max",
        {"min": {"cpu": 1, "memory": "9Gi"}, "max": {"cpu": 1, "memory": "8G"}},
        "spec.min of memory is more than spec.max of it: lower it, or raise spec.max",
    ),
    (
        "min above max of millicores",
        {"min": {"cpu": "1001m"}, "max": {"cpu": 1}},
        "spec.min of cpu is more than spec.max of it",
    ),
    ("negative", {"max": {"cpu": -1}}, f"spec.max of cpu {NO_AMOUNT}"),
    ("negative with a suffix", {"min": {"memory": "-1Gi"}}, f"spec.min of memory {NO_AMOUNT}"),
    ("a blank", {"min": {"memory": "8 Gi"}}, f"spec.min of memory {NO_AMOUNT}"),
    ("a unit", {"max": {"memory": "8GB"}}, f"spec.max of memory {NO_AMOUNT}"),
    ("no text", {"max": {"memory": ""}}, f"spec.max of memory {NO_AMOUNT}"),
    ("a bare gpu", {"max": {"gpu": 8}}, f"spec.max of gpu {NO_NAME}"),
    ("a typo", {"min": {"memroy": "8Gi"}}, f"spec.min of memroy {NO_NAME}"),
    ("a typo of ours", {"min": {"alnair/vgpu-mem": 1}}, f"spec.min of alnair/vgpu-mem {NO_NAME}"),
    ("several GPUs", {"max": {"nvidia.com/gpus": 1}}, f"spec.max of nvidia.com/gpus {NO_NAME}"),
    ("a ResourceQuota's", {"max": {"requests.cpu": 1}}, f"spec.max of requests.cpu {NO_NAME}"),
    (
        "a ResourceQuota's GPU",
        {"max": {"requests.nvidia.com/gpu": 1}},
        f"spec.max of requests.nvidia.com/gpu {NO_NAME}",
    ),
    ("half a GPU", {"min": {"nvidia.com/gpu": "500m"}}, f"spec.min of nvidia.com/gpu {WHOLE}"),
    ("half a pod", {"max": {"pods": "0.5"}}, f"spec.max of pods {WHOLE}"),
    (
        "bytes of a slice",
        {"max": {"alnair/vgpu-memory": "8Gi"}},
        f"spec.max of alnair/vgpu-memory {MIB}",
    ),
    (
        "MiB of MiB",
        {"min": {"alnair/vgpu-memory": "8192Mi"}},
        f"spec.min of alnair/vgpu-memory {MIB}",
    ),
    ("GiB of a slice", {"max": {"alnair/vgpu-memory": 8}}, MIB),
    ("not an object", {"max": 8}, "must be of type object"),
]
#: What cannot be meant otherwise.
VALID: list[dict[str, Any]] = [
    {},
    {"min": {}, "max": {}},
    {"min": {"cpu": "500m", "memory": "1.5Gi"}, "max": {"cpu": 4, "memory": "16e9"}},
    {"min": {"nvidia.com/gpu": 0}, "max": {"nvidia.com/gpu": "8"}},
    {"max": {"alnair/vgpu-memory": 0, "alnair/vgpu-compute": 150, "alnair/vgpu": 3}},
    {"max": {"alnair/vgpu-memory": "80k"}},  # as Go writes 80000
    {"max": {"nvidia.com/mig-1g.10gb": 7, "amd.com/gpu": 2, "hugepages-2Mi": "64Mi", "pods": 9}},
    {"max": {f"example.com/r{number}": number for number in range(32)}},
]


def quota(spec: dict[str, Any]) -> Manifest:
    of = {"apiVersion": ELASTIC_QUOTAS.api_version, "kind": ELASTIC_QUOTAS.kind}
    return {**of, "metadata": {"generateName": "q-"}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "said"), [case[1:] for case in INVALID], ids=[case[0] for case in INVALID]
)
async def test_a_mistake_is_refused_with_its_field_and_what_to_write(
    client: Client, spec: dict[str, Any], said: str
) -> None:
    with pytest.raises(errors.Invalid) as caught:
        await client.create(ELASTIC_QUOTAS, quota(spec), "default")
    assert said in str(caught.value)


@pytest.mark.parametrize("spec", VALID)
async def test_what_can_be_meant_is_taken(
    client: Client, make_namespace: Callable[[], Awaitable[str]], spec: dict[str, Any]
) -> None:
    await client.create(ELASTIC_QUOTAS, quota(spec), await make_namespace())


async def test_a_quota_that_was_there_before_the_rules_stays_until_its_spec_changes(
    client: Client, make_namespace: Callable[[], Awaitable[str]]
) -> None:
    # The same kind in a group of this test alone.
    ours = msgspec.structs.replace(ELASTIC_QUOTA, group="test.alnair.io", annotations={})
    kind, namespace = ours.resource(), await make_namespace()

    async def apply(definition: CrdDefinition) -> None:
        await client.apply(CRDS, crd(definition), field_manager="alnair-test")

    async def answer(name: str) -> str:
        made = {"metadata": {"name": name}, "spec": {"min": {"gpu": 2}, "max": {"gpu": 1}}}
        made |= {"apiVersion": kind.api_version, "kind": kind.kind}
        try:
            await client.create(kind, made, namespace)
        except errors.Invalid:
            return "refused"
        except errors.NotFound:
            return "not served"
        return "made"

    async def is_made() -> bool:
        return await answer("old") == "made"

    await apply(msgspec.structs.replace(ours, spec_rules=()))
    await eventually(is_made)
    await apply(ours)
    numbers = itertools.count()

    async def is_refused() -> bool:
        return await answer(f"new-{next(numbers)}") == "refused"

    await eventually(is_refused, what="the rules are in force")
    used = {"status": {"used": {"gpu": 1}}}
    await client.merge_patch(kind, "old", used, namespace, subresource="status")
    await client.merge_patch(kind, "old", {"metadata": {"labels": {"a": "b"}}}, namespace)
    with pytest.raises(errors.Invalid, match="is nothing that pods request"):
        await client.merge_patch(kind, "old", {"spec": {"max": {"gpu": 3}}}, namespace)
    mended = {"spec": {part: {"gpu": None, "nvidia.com/gpu": 1} for part in ("min", "max")}}
    await client.merge_patch(kind, "old", mended, namespace)
