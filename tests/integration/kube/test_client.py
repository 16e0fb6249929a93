"""The client against a real API server: every call, and the refusals that callers rely on."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from alnair.kube import errors
from alnair.kube.client import Client
from alnair.kube.resources import CONFIGMAPS, DISRUPTION_BUDGETS, PODS, SERVICE_ACCOUNTS, Manifest

MakeNamespace = Callable[[], Awaitable[str]]


class Meta(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str


class Slim(msgspec.Struct):
    metadata: Meta
    data: dict[str, str] = {}


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> Manifest:
    metadata: Manifest = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def make_pod(client: Client, namespace: str, name: str) -> Manifest:
    account = {"metadata": {"name": "default"}}
    with suppress(errors.AlreadyExists):
        await client.create(SERVICE_ACCOUNTS, account, namespace)
    spec: dict[str, Any] = {
        "schedulerName": "nobody",
        "containers": [{"name": "c", "image": "none"}],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": spec,
    }
    return await client.create(PODS, pod, namespace)


async def test_an_object_is_created_read_replaced_and_deleted(
    client: Client, make_namespace: MakeNamespace
) -> None:
    namespace = await make_namespace()
    made = await client.create(CONFIGMAPS, config_map("a", k="1"), namespace)
    with pytest.raises(errors.AlreadyExists) as caught:
        await client.create(CONFIGMAPS, config_map("a"), namespace)
    assert caught.value.details is not None
    assert caught.value.details.name == "a"

    changed = {**made, "data": {"k": "2"}}
    await client.replace(CONFIGMAPS, changed)
    with pytest.raises(errors.Conflict):
        await client.replace(CONFIGMAPS, {**changed, "data": {"k": "3"}})
    assert (await client.get(CONFIGMAPS, "a", namespace))["data"] == {"k": "2"}

    with pytest.raises(errors.Conflict):
        await client.delete(CONFIGMAPS, "a", namespace, uid="another")
    await client.delete(CONFIGMAPS, "a", namespace, uid=made["metadata"]["uid"])
    with pytest.raises(errors.NotFound):
        await client.get(CONFIGMAPS, "a", namespace)


async def test_a_list_comes_in_pages_of_one_moment_and_as_our_type(
    client: Client, make_namespace: MakeNamespace
) -> None:
    namespace = await make_namespace()
    for number in range(7):
        labels = {"odd": str(number % 2)}
        await client.create(CONFIGMAPS, config_map(f"m{number}", labels), namespace)
    names = [f"m{number}" for number in range(7)]
    slim = CONFIGMAPS.typed(Slim)

    sizes, seen, versions = [], [], set()
    selector = "metadata.name!=kube-root-ca.crt"
    async for page in client.pages(slim, namespace, page_size=3, field_selector=selector):
        sizes.append(len(page))
        versions.add(page.resource_version)
        seen += [one.metadata.name for one in page]
        if len(sizes) == 1:
            await client.create(CONFIGMAPS, config_map("m9"), namespace)
    assert (sizes, seen, len(versions)) == ([3, 3, 1], names, 1)

    odd = await client.list(slim, namespace, label_selector="odd=1")
    assert [one.metadata.name for one in odd.items] == ["m1", "m3", "m5"]
    await client.delete_collection(CONFIGMAPS, namespace, label_selector="odd")
    left = await client.list(slim, namespace, field_selector=selector)
    assert [one.metadata.name for one in left.items] == ["m9"]


async def test_a_watch_tells_all_changes_after_a_version_and_goes_on_from_there(
    client: Client, make_namespace: MakeNamespace
) -> None:
    namespace = await make_namespace()
    slim = CONFIGMAPS.typed(Slim)
    start = (await client.list(slim, namespace)).resource_version
    await client.create(CONFIGMAPS, config_map("a", k="1"), namespace)
    await client.merge_patch(CONFIGMAPS, "a", {"data": {"k": "2"}}, namespace)

    watch = client.watch(
        slim, resource_version=start, namespace=namespace, field_selector="metadata.name=a"
    )
    told = []
    async for event in watch:
        told.append((event.type, event.object.data))
        if len(told) == 2:
            break
    assert told == [("ADDED", {"k": "1"}), ("MODIFIED", {"k": "2"})]

    await client.delete(CONFIGMAPS, "a", namespace)
    rest: list[str] = []
    version = watch.resource_version
    while "DELETED" not in rest:  # a busy server may end a watch before it has told all
        resumed = client.watch(
            slim,
            resource_version=version,
            namespace=namespace,
            field_selector="metadata.name=a",
            timeout_seconds=2,
        )
        rest += [event.type async for event in resumed]
        # The bookmark before the end of a watch moved the version beyond the last event.
        assert int(resumed.resource_version) >= int(version)
        version = resumed.resource_version
    # Where exactly the first watch was left decides whether the change is told again: never less.
    assert rest[-1] == "DELETED"


async def test_a_binding_carries_annotations_and_happens_once(
    client: Client, make_namespace: MakeNamespace
) -> None:
    namespace = await make_namespace()
    uid = (await make_pod(client, namespace, "p"))["metadata"]["uid"]
    with pytest.raises(errors.Conflict):
        await client.bind(namespace, "p", "another-uid", "node-a")
    await client.bind(namespace, "p", uid, "node-a", {"ai.centaurus.io/gpu-assignment": "{}"})
    pod = await client.get(PODS, "p", namespace)
    assert pod["spec"]["nodeName"] == "node-a"
    assert pod["metadata"]["annotations"] == {"ai.centaurus.io/gpu-assignment": "{}"}
    with pytest.raises(errors.Conflict, match="already assigned to node"):
        await client.bind(namespace, "p", uid, "node-b")
    with pytest.raises(errors.NotFound):
        await client.bind(namespace, "gone", uid, "node-b")


async def test_an_eviction_deletes_unless_a_budget_or_the_uid_refuses(
    client: Client, make_namespace: MakeNamespace
) -> None:
    namespace = await make_namespace()
    uid = (await make_pod(client, namespace, "p"))["metadata"]["uid"]
    budget = {
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
    }
    await client.create(DISRUPTION_BUDGETS, budget, namespace)
    ready = [{"type": "Ready", "status": "True"}]
    status = {"status": {"phase": "Running", "conditions": ready}}
    await client.merge_patch(PODS, "p", status, namespace, subresource="status")
    with pytest.raises(errors.TooManyRequests, match="disruption budget"):
        await client.evict(namespace, "p", uid)
    await client.delete(DISRUPTION_BUDGETS, "b", namespace)
    with pytest.raises(errors.Conflict):
        await client.evict(namespace, "p", "another-uid")
    await client.evict(namespace, "p", uid, grace_seconds=0)
    with pytest.raises(errors.NotFound):
        await client.get(PODS, "p", namespace)


async def test_applied_fields_have_an_owner(client: Client, make_namespace: MakeNamespace) -> None:
    namespace = await make_namespace()
    ours = {**config_map("a", x="1", y="1"), "metadata": {"name": "a", "namespace": namespace}}
    await client.apply(CONFIGMAPS, ours, field_manager="one")
    theirs = {**ours, "data": {"x": "2"}}
    with pytest.raises(errors.Conflict, match='conflict with "one"'):
        await client.apply(CONFIGMAPS, theirs, field_manager="two", force=False)
    taken = await client.apply(CONFIGMAPS, theirs, field_manager="two")
    assert taken["data"] == {"x": "2", "y": "1"}
    dropped = await client.apply(CONFIGMAPS, {**ours, "data": {}}, field_manager="one")
    assert dropped["data"] == {"x": "2"}


async def test_a_merge_patch_removes_with_null_and_status_is_a_place_of_its_own(
    client: Client, make_namespace: MakeNamespace
) -> None:
    namespace = await make_namespace()
    await make_pod(client, namespace, "p")
    patch = {"metadata": {"labels": {"app": None, "new": "1"}}, "status": {"phase": "Failed"}}
    patched = await client.merge_patch(PODS, "p", patch, namespace)
    assert patched["metadata"]["labels"] == {"new": "1"}
    assert patched["status"]["phase"] == "Pending"
    patched = await client.merge_patch(
        PODS, "p", {"status": {"phase": "Failed"}}, namespace, subresource="status"
    )
    assert patched["status"]["phase"] == "Failed"


async def test_an_invalid_object_is_refused_field_by_field(
    client: Client, make_namespace: MakeNamespace
) -> None:
    namespace = await make_namespace()
    with pytest.raises(errors.Invalid) as caught:
        await client.create(CONFIGMAPS, config_map("UPPER"), namespace)
    assert caught.value.details is not None
    assert [cause.field for cause in caught.value.details.causes] == ["metadata.name"]
    with pytest.raises(errors.BadRequest):
        await client.create(CONFIGMAPS, {"metadata": {"name": []}}, namespace)


async def test_a_user_without_rights_is_forbidden(client: Client) -> None:
    nobody = replace(client.connection, headers={"Impersonate-User": "nobody"})
    async with Client(nobody) as stranger:
        with pytest.raises(errors.Forbidden, match='User "nobody" cannot list'):
            await stranger.list(PODS)
        with pytest.raises(errors.Forbidden):
            async for _ in stranger.watch(PODS, resource_version="0"):
                pass


async def test_any_path_can_be_asked(client: Client) -> None:
    assert await client.raw("GET", "/readyz") == b"ok"
    assert b'"gitVersion"' in await client.raw("GET", "/version")
