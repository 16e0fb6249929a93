"""What the feed makes of PodGroups of both kinds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from alnair.kube.client import Client
from alnair.kube.resources import LEGACY_PODGROUPS, PODGROUPS, Resource
from alnair.live.engine_feed import Feed
from alnair.model import names
from alnair.scheduler.engine import events
from kit.fault_server import FaultServer, line, serving


class Groups(FaultServer):
    """Serves nothing but PodGroups named g, one of each kind at most."""

    def __init__(self, **members: int) -> None:
        super().__init__()
        self.members = members

    def page(self, request: web.Request) -> web.Response:
        group = request.path.split("/")[2]
        items = [podgroup(n) for kind, n in self.members.items() if KINDS[kind].group == group]
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})

    async def watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if request.path.split("/")[2] == PODGROUPS.group:
            async with self.changed:
                await self.changed.wait()
            await response.write(line("DELETED", podgroup(self.members["new"])))
        await asyncio.Event().wait()
        return response


KINDS: dict[str, Resource[Any]] = {"new": PODGROUPS, "legacy": LEGACY_PODGROUPS}


def podgroup(members: int) -> dict[str, Any]:
    metadata = {"name": "g", "namespace": "n", "uid": f"u{members}", "resourceVersion": "2"}
    return {"metadata": metadata, "spec": {"minMember": members}}


@asynccontextmanager
async def following(server: Groups) -> AsyncIterator[Feed]:
    async with serving(server), Client(server.connection, timeout=5) as client:
        feed = Feed(client)
        task = asyncio.create_task(feed.run())
        await feed.synced()
        yield feed
        task.cancel()
        await asyncio.wait([task])


def wanted(found: list[events.Event]) -> list[int]:
    return [e.gang.min_member for e in found if isinstance(e, events.GangChanged)]


async def test_of_two_podgroups_of_one_name_the_one_that_wants_more_pods_rules() -> None:
    for members in ({"new": 4, "legacy": 1}, {"new": 1, "legacy": 4}, {"legacy": 4}):
        async with following(Groups(**members)) as feed:
            assert wanted(list(feed.everything())) == [4]


async def test_when_one_of_two_podgroups_goes_the_other_rules() -> None:
    server = Groups(new=4, legacy=2)
    async with following(server) as feed:
        feed.listening = True
        async with asyncio.timeout(20):
            while not wanted(list(feed.inbox)):
                async with server.changed:
                    server.changed.notify_all()
                await asyncio.sleep(0)
        assert wanted(list(feed.inbox)) == [2]


class Quotas(Groups):
    """Serves one quota that cannot be read."""

    def page(self, request: web.Request) -> web.Response:
        quota = {"metadata": {"name": "q", "namespace": "n"}, "spec": {"min": {"cpu": "much"}}}
        items = [quota] if request.path.endswith("/elasticquotas") else []
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})


async def test_a_quota_that_cannot_be_read_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async with following(Quotas()):
        pass
    said = [r.message for r in caplog.records if "ElasticQuota n/q is left out" in r.message]
    assert len(said) == 1
    assert "'much' is not a quantity" in said[0]


class Agents(Groups):
    """Serves a node's agent, after everything else has been read."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/leases") and "watch" not in request.query:
            await self.may_answer.wait()
        return await super().handle(request)

    def page(self, request: web.Request) -> web.Response:
        lease = {
            "metadata": {"name": "alnair-agent-a", "namespace": names.NAMESPACE},
            "spec": {"renewTime": "2026-11-29T00:00:00.000000Z"},
        }
        items = [lease] if request.path.endswith("/leases") else []
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})


async def test_who_waits_for_all_that_there_is_knows_which_agents_live() -> None:
    """Nothing that a dead agent has measured counts: a new leader would place as if it were so."""
    server = Agents()
    async with serving(server), Client(server.connection, timeout=5) as client:
        feed = Feed(client)
        running = asyncio.create_task(feed.run())
        synced = asyncio.create_task(feed.synced())
        async with asyncio.timeout(20):
            await asyncio.gather(feed._pods.synced.wait(), feed._nodes.synced.wait())
        server.may_answer.set()
        await synced
        agents = [e.lease for e in feed.everything() if isinstance(e, events.AgentAlive)]
        running.cancel()
        await asyncio.wait([running])
    assert agents == ["alnair-agent-a"]
