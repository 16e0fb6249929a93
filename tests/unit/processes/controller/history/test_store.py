"""A history that is away is waited for, and what is written then is there."""

import asyncio
import threading
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from alnair.history.database import queries, writing
from alnair.history.database.addresses import HistoryError
from alnair.history.database.queries import Filter
from alnair.history.database.rows import Changes
from alnair.history.database.tables import JOBS
from alnair.processes.controller.history.store import Store
from kit.job_history import job_row, pod_row


async def test_what_cannot_be_written_now_is_written_when_it_can(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.write_text("a file is in the way")
    store = Store(str(folder / "history.db"))
    await store.open_patiently()
    with pytest.raises(HistoryError, match="it cannot be opened"):
        await store.once(lambda _: None)
    changes = Changes(jobs=[job_row()], pods=[pod_row()])
    writing = asyncio.create_task(store.write(changes))
    await asyncio.sleep(0)
    folder.unlink()
    assert await writing == set()
    found = await store.read(lambda connection: queries.jobs(connection, Filter()))
    assert [job.name for job in found] == ["train"]
    store.close()


async def test_what_had_to_wait_has_changed_when_it_is_written(tmp_path: Path) -> None:
    store, turn = Store(str(tmp_path / "history.db")), threading.Event()
    await store.open_patiently()
    now = 1000.0
    before = asyncio.create_task(store.once(lambda _: turn.wait()))
    changes = Changes(jobs=[job_row()], pods=[pod_row()])
    writing = asyncio.create_task(store.write(changes, lambda: now))
    await asyncio.sleep(0)
    now = 2000.0  # somebody may have looked for changes meanwhile
    turn.set()
    assert await writing == set()
    await before
    assert await store.read(lambda one: one.scalar(select(JOBS.c.changed))) == 2000.0
    store.close()


async def test_who_lost_the_lease_commits_nothing_and_asks_no_more(tmp_path: Path) -> None:
    leads, refused = True, asyncio.Semaphore(0)
    loop = asyncio.get_running_loop()

    def asked() -> bool:
        if not leads:
            loop.call_soon_threadsafe(refused.release)
        return leads

    store = Store(str(tmp_path / "history.db"), asked)
    await store.open_patiently()
    assert await store.write(Changes(jobs=[job_row()], pods=[pod_row()])) == set()

    def held_up(connection: Connection) -> None:
        nonlocal leads
        leads = False  # while the transaction was open
        writing.write(connection, Changes(jobs=[job_row("second", "second")]), 3000.0)

    waiting = asyncio.create_task(store.once(held_up))
    later = asyncio.create_task(store.write(Changes(jobs=[job_row("third", "third")])))
    for _ in (waiting, later):
        await refused.acquire()
    for one in (waiting, later):
        assert not one.done()
        one.cancel()
    found = await store.read(lambda connection: queries.jobs(connection, Filter()))
    assert [job.name for job in found] == ["train"]
    store.close()


async def test_an_address_of_no_history_is_refused_at_once() -> None:
    with pytest.raises(HistoryError, match="mysql cannot keep a history"):
        await Store("mysql://host/db").open_patiently()
