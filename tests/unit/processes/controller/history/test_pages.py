"""The pages of the history: for whom they are, and what may be asked of them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from alnair.kube.client import Client
from alnair.processes.controller.history.pages import EFFICIENCY, JOBS, add_history
from alnair.processes.controller.history.store import Store
from alnair.serving.access import Access
from kit.job_history import job_row, opened, pod_row, put
from kit.reviews import Reviews

ONE = f"{JOBS}/red/Job/train"
Asked = TestClient[web.Request, web.Application]


@pytest.fixture
async def asked(tmp_path: Path) -> AsyncIterator[Asked]:
    """A history with one job, which Ann may read, and Ben may not."""
    put(opened(tmp_path), jobs=[job_row()], pods=[pod_row()])
    app = web.Application()
    store = Store(str(tmp_path / "history.db"))
    add_history(app, store)
    reviews = Reviews()
    reviews.known = {"a": "ann", "b": "ben"}
    pages = (JOBS, f"{JOBS}/{{namespace}}/{{kind}}/{{name}}", EFFICIENCY)
    reviews.allowed = {("ann", page) for page in pages}
    Access(cast("Client", reviews)).guard(app)
    async with TestClient(TestServer(app)) as client:
        yield client
    store.close()


def of(token: str) -> Any:
    return {"Authorization": f"Bearer {token}"}


async def test_who_may_gets_the_jobs_and_a_wrong_filter_is_said(asked: Asked) -> None:
    async with asked.get(JOBS, params={"namespace": "red"}, headers=of("a")) as answer:
        assert (answer.status, len((await answer.json())["jobs"])) == (200, 1)
    async with asked.get(ONE, headers=of("a")) as answer:
        assert (answer.status, (await answer.json())["job"]["name"]) == (200, "train")
    async with asked.get(JOBS, params={"since": "soon"}, headers=of("a")) as answer:
        assert (answer.status, "since=soon: write" in await answer.text()) == (400, True)
    async with asked.get(f"{JOBS}/red/Job/none", headers=of("a")) as answer:
        assert answer.status == 404


async def test_who_may_gets_the_gpu_hours_and_a_wrong_request_is_said(asked: Asked) -> None:
    query = {"by": "user", "worst": "3"}
    async with asked.get(EFFICIENCY, params=query, headers=of("a")) as answer:
        assert answer.status == 200
        assert (await answer.json())["shares"][0]["jobs"] == 1
    for wrong in ({"by": "team"}, {"worst": "-1"}, {"since": "soon"}, {"user": "ann"}):
        async with asked.get(EFFICIENCY, params=wrong, headers=of("a")) as answer:
            assert (answer.status, next(iter(wrong)) in await answer.text()) == (400, True), wrong


@pytest.mark.parametrize("path", [JOBS, ONE, EFFICIENCY])
async def test_strangers_get_nothing_and_nobody_changes_anything(asked: Asked, path: str) -> None:
    for method in ("GET", "DELETE", "POST", "PUT", "PATCH"):
        async with asked.request(method, path) as answer:
            assert answer.status == 401, method
        async with asked.request(method, path, headers=of("b")) as answer:
            assert answer.status == 403, method
    for method in ("DELETE", "POST", "PUT", "PATCH"):
        async with asked.request(method, JOBS, headers=of("a")) as answer:
            assert answer.status == 405, method
            assert "GET" in answer.headers["Allow"]
    async with asked.get(ONE, headers=of("a")) as answer:
        assert answer.status == 200
