"""A process is kept while it is well and the one that is wanted, and replaced otherwise."""

import asyncio
import dataclasses
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from alnair.local.components import processes, supervision
from alnair.local.components.supervision import Supervised
from alnair.local.errors import LocalClusterError
from alnair.local.layout import Layout
from alnair.local.report import NO_REPORT

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


async def well() -> str | None:
    return None


async def unwell() -> str | None:
    return "it is not well"


def wanted(
    command: list[str] | None = None,
    digest: str = "first",
    probe: Callable[[], Awaitable[str | None]] = well,
) -> Supervised:
    return Supervised("one", command or SLEEP, digest, os.environ, probe)


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    found = Layout(tmp_path.resolve(), "cluster")
    found.folder.mkdir()
    yield found
    asyncio.run(supervision.stop(found, "one", signal.SIGKILL))


def pid(layout: Layout) -> int:
    return processes.components(processes.find(layout.folder))["one"].pid


async def test_what_is_well_is_left_alone(layout: Layout) -> None:
    await supervision.ensure(wanted(), layout, NO_REPORT)
    before = pid(layout)
    await supervision.ensure(wanted(), layout, NO_REPORT)
    assert pid(layout) == before


async def test_what_was_started_otherwise_is_replaced(layout: Layout) -> None:
    await supervision.ensure(wanted(), layout, NO_REPORT)
    before = pid(layout)
    await supervision.ensure(wanted(digest="second"), layout, NO_REPORT)
    assert pid(layout) != before


async def test_what_is_alive_and_not_well_is_replaced(layout: Layout) -> None:
    await supervision.ensure(wanted(), layout, NO_REPORT)
    before = pid(layout)

    async def is_new() -> str | None:
        return "it hangs" if pid(layout) == before else None

    await supervision.ensure(wanted(probe=is_new), layout, NO_REPORT, patience=0.1)
    assert pid(layout) != before


async def test_what_never_answers_is_replaced_and_told(layout: Layout) -> None:
    await supervision.ensure(wanted(), layout, NO_REPORT)
    before = pid(layout)

    async def silent() -> str | None:
        if pid(layout) == before:
            await asyncio.Event().wait()
        return None

    stuck = dataclasses.replace(wanted(probe=silent), answer_seconds=0.1)
    assert await stuck.asked() == "no answer within 0.1 s"
    await supervision.ensure(stuck, layout, NO_REPORT, patience=0.05)
    assert pid(layout) != before


async def test_what_ends_at_its_start_is_told_with_its_last_words(layout: Layout) -> None:
    command = ["/bin/sh", "-c", "sleep 0.2; echo Error: no such flag; exit 1"]
    with pytest.raises(LocalClusterError, match="one stopped while it was starting: Error: no"):
        await supervision.ensure(wanted(command, probe=unwell), layout, NO_REPORT)


async def test_what_does_not_become_well_is_told_with_what_it_says(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "_READY_SECONDS", 0.1)
    with pytest.raises(LocalClusterError, match=r"not ready after 0\.1 s \(it is not well\)"):
        await supervision.ensure(wanted(probe=unwell), layout, NO_REPORT)
