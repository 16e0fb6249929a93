"""An informer over a real API server, also while that is killed and comes back."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
import pytest

from alnair.kube.client import Client
from alnair.kube.errors import ApiError, ConnectionFailed, Gone, NotFound
from alnair.kube.informer import Change, ChangeKind, Informer
from alnair.kube.resources import CONFIGMAPS
from alnair.local.controlplane import LocalCluster


class Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    uid: str
    resource_version: str


class Slim(msgspec.Struct):
    metadata: Meta
    data: dict[str, str] = {}


def config_map(name: str, value: int) -> dict[str, object]:
    return {"metadata": {"name": name, "labels": {"follow": "yes"}}, "data": {"v": str(value)}}


async def patiently(call: Callable[[], Awaitable[object]]) -> None:
    """Do something that may be done twice, whatever happens to the server meanwhile."""
    async with asyncio.timeout(60):
        while True:
            try:
                await call()
            except (ApiError, ConnectionFailed):
                await asyncio.sleep(0.1)
            else:
                return


async def apply(client: Client, name: str, value: int) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", **config_map(name, value)}
    await patiently(
        lambda: client.apply(CONFIGMAPS, manifest, field_manager="test", namespace="default")
    )


async def test_a_killed_api_server_costs_no_change_and_tells_none_twice(
    cluster: LocalCluster, client: Client
) -> None:
    changes: list[Change[tuple[str, str]]] = []
    heard = asyncio.Event()

    def on_change(change: Change[tuple[str, str]]) -> None:
        changes.append(change)
        heard.set()

    for number in range(20):
        await apply(client, f"m{number}", 0)
    informer: Informer[Slim, tuple[str, str]] = Informer(
        client,
        CONFIGMAPS.typed(Slim),
        lambda one: (one.metadata.uid, one.data.get("v", "")),
        on_change,
        label_selector="follow=yes",
        identity=lambda value: value[0],
    )
    task = asyncio.create_task(informer.run())
    await informer.synced.wait()
    writing = asyncio.create_task(write_all(client))
    await asyncio.sleep(0.3)
    await cluster.restart("kube-apiserver", signal.SIGKILL)
    await writing
    wanted = {f"m{number}": "5" for number in range(20) if number != 3}
    async with asyncio.timeout(60):
        while {key[1]: value for key, (_, value) in informer.items.items()} != wanted:
            heard.clear()
            await heard.wait()
    task.cancel()
    await asyncio.wait([task])
    # A restarted server has forgotten the past: whoever asks for it must list again.
    with pytest.raises(Gone):
        async for _ in client.watch(CONFIGMAPS, resource_version="1", timeout_seconds=5):
            pass
    told: dict[tuple[str, str], object] = {}
    for change in changes:
        assert told.get(change.key) == change.old
        if change.kind is ChangeKind.DELETED:
            del told[change.key]
        elif change.kind is not ChangeKind.SYNCED:
            told[change.key] = change.new
    assert told == dict(informer.items)
    assert informer.watches > 1


async def write_all(client: Client) -> None:
    for value in range(1, 6):
        for number in range(20):
            await apply(client, f"m{number}", value)

    async def delete() -> None:
        with suppress(NotFound):
            await client.delete(CONFIGMAPS, "m3", "default")

    await patiently(delete)
