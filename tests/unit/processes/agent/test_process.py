"""The agent as a whole, where something that it needs is not well."""

import threading

import pytest

from alnair.node.nvml import Nvml, NvmlError
from alnair.processes.agent import process
from alnair.processes.agent.settings import Settings
from kit.kubelet_sockets import short_folder


async def test_a_driver_that_hangs_does_not_keep_the_agent_from_its_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = threading.Event()

    def hang() -> Nvml:
        ended.wait()
        raise NvmlError("it hung")

    monkeypatch.setattr(process, "open_nvml", lambda _: hang())
    monkeypatch.setattr(process, "_FIRST_LOOK", 0.01)
    monkeypatch.setattr("alnair.node.gpu_driver.CLOSING", 0.01)
    try:
        with short_folder() as folder:
            async with process.agent(Settings(folder, probes=False)) as url:
                assert url.startswith("http://127.0.0.1:")
    finally:
        ended.set()
