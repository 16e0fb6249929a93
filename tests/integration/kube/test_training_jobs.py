"""Training jobs at a real API server: what it refuses and in which words, fills in, and scales."""

import json
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from alnair.kube import errors
from alnair.kube.client import Client
from alnair.kube.crds.elastic_crds import TRAINING_JOBS
from alnair.kube.objects.training_jobs import ElasticHorovodJobWire, project_training_job
from alnair.kube.resources import Manifest, Resource
from kit import training_jobs as jobs

KINDS = {one.kind: one.resource() for one in TRAINING_JOBS}


async def create(client: Client, job: Manifest, namespace: str = "default") -> Manifest:
    """Create a job as kubectl does: a field that nobody knows is an error."""
    resource: Resource[Manifest] = KINDS[job["kind"]]
    answer = await client.raw(
        "POST",
        resource.collection(namespace),
        query={"fieldValidation": "Strict"},
        body=json.dumps(job).encode(),
    )
    return msgspec.json.decode(answer)


@pytest.mark.parametrize(
    ("job", "field", "words"),
    [case[1:] for case in jobs.INVALID],
    ids=[case[0] for case in jobs.INVALID],
)
async def test_an_invalid_job_is_refused_at_its_field_with_what_to_do(
    client: Client, job: Manifest, field: str, words: str
) -> None:
    with pytest.raises(errors.ApiError) as caught:
        await create(client, job)
    assert words in str(caught.value)
    assert field in str(caught.value)


def test_forty_ways_to_be_wrong_are_told_by_the_api_server() -> None:
    assert len({case[0] for case in jobs.INVALID}) >= 40


async def test_the_originals_manifests_are_taken_as_they_are(
    client: Client, make_namespace: Callable[[], Awaitable[str]]
) -> None:
    namespace = await make_namespace()
    made = await create(client, jobs.ORIGINAL_ELASTIC, namespace)
    assert made["spec"] == jobs.ORIGINAL_ELASTIC["spec"] | {"schedulerName": "alnair-scheduler"}
    fixed = await create(client, jobs.ORIGINAL_FIXED, namespace)
    assert fixed["spec"]["workersSpec"]["replicas"] == 2
    read = project_training_job(msgspec.convert(made, ElasticHorovodJobWire))
    assert (read.least, read.most, read.wish, read.gpus, read.slots) == (2, 5, 5, 1, 1)


async def test_a_job_is_scaled_by_its_subresource_within_its_bounds(
    client: Client, make_namespace: Callable[[], Awaitable[str]]
) -> None:
    namespace = await make_namespace()
    for job in (jobs.elastic(), jobs.torch()):
        kind = KINDS[job["kind"]]
        await create(client, job, namespace)
        scale = {"spec": {"replicas": 3}}
        await client.merge_patch(kind, "job", scale, namespace, subresource="scale")
        there = await client.get(kind, "job", namespace)
        assert there["spec"]["workersSpec"]["targetReplicas"] == 3
        scale = {"spec": {"replicas": 9}}
        with pytest.raises(errors.Invalid, match="more than maxReplicas"):
            await client.merge_patch(kind, "job", scale, namespace, subresource="scale")


async def test_a_fixed_job_is_resized_only_while_it_is_suspended(
    client: Client, make_namespace: Callable[[], Awaitable[str]]
) -> None:
    namespace, kind = await make_namespace(), KINDS["HorovodJob"]
    await create(client, jobs.fixed(), namespace)
    more: Manifest = {"spec": {"workersSpec": {"replicas": 4}}}
    with pytest.raises(errors.Invalid, match=r"spec\.runPolicy\.suspend first"):
        await client.merge_patch(kind, "job", more, namespace)
    more["spec"]["runPolicy"] = {"suspend": True}
    made = await client.merge_patch(kind, "job", more, namespace)
    assert made["spec"]["workersSpec"]["replicas"] == 4
