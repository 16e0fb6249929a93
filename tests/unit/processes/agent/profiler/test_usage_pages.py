"""The pages of what pods use: for whom they are, and what may be asked of them."""

import shutil
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from alnair.kube.client import Client
from alnair.processes.agent.profiler.usage_pages import add_usage_pages
from alnair.serving.access import Access
from kit.fake_cgroups import UID
from kit.profiled_node import ProfiledNode
from kit.reviews import Reviews


@pytest.fixture
def node(tmp_path: Path) -> ProfiledNode:
    return ProfiledNode(tmp_path)


@pytest.fixture
def app(node: ProfiledNode) -> web.Application:
    """Pages that the keeper may read and forget, Ann may read, and Ben may not."""
    app = web.Application()
    add_usage_pages(app, node.profiler)
    reviews = Reviews()
    reviews.known = {"k": "keeper", "a": "ann", "b": "ben"}
    reviews.allowed = {
        ("keeper", "/v1/usage"),
        ("ann", "/v1/usage", "get"),
        ("ann", "/v1/series"),
    }
    Access(cast("Client", reviews)).guard(app)
    return app


def of(token: str) -> Any:
    return {"Authorization": f"Bearer {token}"}


async def test_who_may_read_may_not_forget_and_strangers_may_nothing(
    app: web.Application, node: ProfiledNode
) -> None:
    path = node.pod()
    await node.second(path=path)
    shutil.rmtree((node.machine.root / path[1:]).parent)
    await node.second()
    async with TestClient(TestServer(app)) as asked:
        async with asked.get("/v1/usage", headers=of("a")) as answer:
            page = await answer.json()
            assert [one["usage"]["uid"] for one in page["ended"]] == [UID]
        query = {"upto": "1", "stream": page["stream"]}
        for token, status in (("", 401), ("nobody", 401), ("b", 403), ("a", 403), ("k", 200)):
            headers = of(token) if token else {}
            async with asked.delete("/v1/usage", params=query, headers=headers) as answer:
                assert answer.status == status, token
            async with asked.get("/v1/usage", headers=of("a")) as answer:
                assert bool((await answer.json())["ended"]) == (status != 200)


@pytest.mark.parametrize("path", ["/v1/usage", "/v1/series"])
async def test_no_other_method_does_anything(app: web.Application, path: str) -> None:
    async with TestClient(TestServer(app)) as asked:
        async with asked.get(path) as answer:
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        async with asked.get(path, headers=of("b")) as answer:
            assert answer.status == 403
        methods = ["POST", "PUT", "PATCH"] + ["DELETE"] * (path == "/v1/series")
        for method in methods:
            async with asked.request(method, path, headers=of("b")) as answer:
                assert answer.status == 403, method
        user = "k" if path == "/v1/usage" else "a"
        for method in methods:
            async with asked.request(method, path, headers=of(user)) as answer:
                assert answer.status == 405, method
