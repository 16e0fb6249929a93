"""The server goes on when a part of it fails."""

import asyncio
from pathlib import Path

import pytest

from alnair.node.vgpu.server import VgpuServer


async def test_ticks_that_fail_in_the_same_way_are_told_once_and_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failed = list[None]()
    fourth = asyncio.Event()

    def fail(*_: object) -> None:
        failed.append(None)
        if len(failed) == 4:
            fourth.set()
        raise ValueError("a mistake of ours")

    async with VgpuServer(tmp_path) as server, asyncio.timeout(20):
        monkeypatch.setattr(server.compute, "tick", fail)
        await fourth.wait()
    told = [record.exc_text for record in caplog.records if record.message == "a tick failed"]
    assert len(told) == 1
    assert "a mistake of ours" in (told[0] or "")
