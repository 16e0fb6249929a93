"""The throughput benchmark does not wait for a scheduler that is no more."""

import asyncio
import importlib
import sys
from pathlib import Path

import psutil
import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


async def test_a_scheduler_that_has_ended_is_told_with_what_it_said_last(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))  # as for a script
    benchmark = importlib.import_module("scheduler_throughput")
    log = tmp_path / "log"
    log.write_text("starting\nno such flag: --qps\n")
    seen = benchmark.Watched()
    scheduler = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE
    )
    process = psutil.Process(scheduler.pid)
    idle = asyncio.create_task(asyncio.Event().wait())
    waiting = asyncio.create_task(benchmark.until(seen, [idle], process, log, lambda: 7))
    await asyncio.sleep(0)
    assert not waiting.done(), "it is there"
    scheduler.kill()
    with pytest.raises(RuntimeError, match="7 are missing") as told:
        await waiting
    idle.cancel()
    await scheduler.wait()
    assert "no such flag: --qps" in str(told.value)
