"""Outboxes are read once and no line less, whatever their streams and answers are."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from alnair.history.database import opening, queries, writing
from alnair.history.database.queries import Filter
from alnair.history.database.rows import Position
from alnair.model import names
from alnair.processes.controller.history.outboxes import PATH, Outboxes
from alnair.processes.controller.history.seen import Agent
from alnair.processes.controller.history.store import Store
from kit.job_history import life
from kit.outbox import Outbox


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "history.db"))


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def jobs(tmp_path: Path) -> set[str]:
    with opening.readable(str(tmp_path / "history.db")) as connection:
        return {job.name for job in queries.jobs(connection, Filter(limit=1000))}


async def visited(store: Store, session: aiohttp.ClientSession, outbox: Outbox) -> None:
    # Another one each time: what is known must be in the database.
    await Outboxes(store, list, urls=[outbox.url]).visit_all(session)


async def test_all_pages_of_an_outbox_are_read_and_then_forgotten(
    tmp_path: Path, store: Store, session: aiohttp.ClientSession
) -> None:
    async with Outbox(page=3) as outbox:
        for number in range(8):
            outbox.add(life(f"pod-{number}"))
        await visited(store, session, outbox)
        assert outbox.held == {}
        assert outbox.asked == [0, 3, 6]
        outbox.add(life("pod-8"))
        await visited(store, session, outbox)
        assert outbox.asked[-1] == 8
    assert jobs(tmp_path) == {f"pod-{number}" for number in range(9)}


async def test_an_outbox_that_was_begun_anew_is_read_from_its_begin(
    tmp_path: Path, store: Store, session: aiohttp.ClientSession
) -> None:
    async with Outbox() as outbox:
        for number in range(3):
            outbox.add(life(f"old-{number}"))
        await visited(store, session, outbox)
        outbox.stream, outbox.last, outbox.held = "second", 0, {}
        outbox.add(life("new-0"))
        await visited(store, session, outbox)
        assert outbox.held == {}
    assert jobs(tmp_path) == {"old-0", "old-1", "old-2", "new-0"}
    position = await store.once(lambda found: writing.position(found, outbox.url))
    assert position == Position(outbox.url, "second", 1)


async def test_what_was_written_and_not_forgotten_is_not_written_again(
    tmp_path: Path, store: Store, session: aiohttp.ClientSession
) -> None:
    async with Outbox() as outbox:
        outbox.add(life("pod"))
        kept = dict(outbox.held)
        await visited(store, session, outbox)
        outbox.held = kept  # as if who read it was killed before it said so
        await visited(store, session, outbox)
        assert outbox.asked == [0, 1]
    assert jobs(tmp_path) == {"pod"}


async def test_an_agent_is_not_believed_about_other_nodes(
    tmp_path: Path, store: Store, session: aiohttp.ClientSession
) -> None:
    async with Outbox() as outbox:
        outbox.add(life("mine", node="n"))
        outbox.add(life("foreign", node="other"))
        port = int(outbox.url.rpartition(":")[2])
        agents = [Agent("n", "127.0.0.1", port)]
        await Outboxes(store, lambda: agents).visit_all(session)
        assert outbox.held == {}
    assert jobs(tmp_path) == {"mine"}


@pytest.mark.parametrize("answer", ["not JSON", '{"v":2,"stream":"s","last":0}', '{"v":1}'])
async def test_an_answer_that_is_no_outbox_is_told_once_and_others_are_read(
    tmp_path: Path,
    store: Store,
    session: aiohttp.ClientSession,
    answer: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = web.Application()

    async def say(_: web.Request) -> web.Response:
        return web.Response(text=answer)

    app.router.add_get(PATH, say)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    bad = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with Outbox() as outbox:
        outbox.add(life("pod"))
        outboxes = Outboxes(store, list, urls=[bad, outbox.url])
        await outboxes.visit_all(session)
        await outboxes.visit_all(session)
    await runner.cleanup()
    assert jobs(tmp_path) == {"pod"}
    told = [one for one in caplog.records if one.levelname == "WARNING"]
    assert len(told) == 1


async def test_a_token_is_sent_over_tls_alone(
    tmp_path: Path, store: Store, session: aiohttp.ClientSession
) -> None:
    seen: list[bool] = []
    app = web.Application()

    async def page(request: web.Request) -> web.Response:
        seen.append(names.TOKEN_HEADER in request.headers)
        return web.json_response({"v": 1, "stream": "s", "last": 0})

    app.router.add_get(PATH, page)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    token = tmp_path / "token"
    token.write_text("secret\n")
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    await Outboxes(store, list, urls=[url], token=token).visit_all(session)
    await runner.cleanup()
    assert seen == [False]


async def test_what_runs_is_written_at_the_first_visit_and_then_now_and_then(
    tmp_path: Path, store: Store, session: aiohttp.ClientSession
) -> None:
    async with Outbox() as outbox:
        outboxes = Outboxes(store, list, urls=[outbox.url])
        seen = []
        for visit in range(6):
            outbox.running = [life(f"pod-{visit}", ended=None)]
            await outboxes.visit_all(session)
            seen.append(len(jobs(tmp_path)))
    assert seen == [1, 1, 1, 1, 2, 2]
