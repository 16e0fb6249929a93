"""The agent as a whole, where something that it needs is not well."""

import threading
from pathlib import Path

import pytest

from alnair.node.nvml import Nvml, NvmlError
from alnair.processes.agent import process
from alnair.processes.agent.settings import Settings


async def test_a_driver_that_hangs_does_not_keep_the_agent_from_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()

    def hang() -> Nvml:
        ended.wait()
        raise NvmlError("it hung")

    monkeypatch.setattr(process, "open_nvml", lambda _: hang())
    monkeypatch.setattr(process, "_FIRST_LOOK", 0.01)
    monkeypatch.setattr("alnair.node.gpu_driver.CLOSING", 0.01)
    try:
        async with process.agent(Settings(tmp_path, probes=False)) as url:
            assert url.startswith("http://127.0.0.1:")
    finally:
        ended.set()


def left_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def without_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Nvml:
        raise NvmlError("there is no driver")

    monkeypatch.setattr(process, "open_nvml", lambda _: none())


async def test_an_agent_without_the_chart_removes_its_folder_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_driver(monkeypatch)
    for _ in range(2):
        async with process.agent(Settings(tmp_path / "alnair" / "agent", probes=False)):
            assert (tmp_path / "alnair" / "agent" / "admin.sock").exists()
        assert left_in(tmp_path) == []


async def test_what_others_keep_in_its_folder_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_driver(monkeypatch)
    (tmp_path / "mine").touch()
    async with process.agent(Settings(tmp_path, probes=False)):
        pass
    assert left_in(tmp_path) == ["mine"]
