"""The agent's first moments: the kubelet comes first, all that is slow comes after."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from alnair.model import names
from alnair.node.kubelet.plugin_server import PluginDevice
from alnair.node.kubelet.told_devices import ToldDevices
from alnair.node.vgpu.folder_lock import FolderLock
from alnair.processes.agent import start
from alnair.processes.agent.device_plugin.early import EarlyPlugins
from alnair.processes.agent.settings import PluginSettings, Settings
from kit import kubelet_sockets
from kit.manual_clock import running

#: Each takes as long to import as all that registers with the kubelet.
_SLOW = ("aiohttp", "prometheus_client", "pynvml", "alnair.processes.agent.process")


def test_what_registers_with_the_kubelet_imports_nothing_slow() -> None:
    program = f"""
import sys
import alnair.cli.agent.process, alnair.processes.agent.start
print([name for name in {_SLOW} if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("has_begun_before", [False, True])
async def test_an_agent_that_was_there_before_registers_before_all_else(
    monkeypatch: pytest.MonkeyPatch, has_begun_before: bool
) -> None:
    registered: list[int] = []
    ready = asyncio.Event()
    async with kubelet_sockets.kubelet() as kubelet:
        await kubelet.start()
        folder = kubelet.folder / "agent"
        folder.mkdir()
        if has_begun_before:
            told = {name: [PluginDevice("a")] for name in (names.GPU, names.VGPU)}
            ToldDevices(folder).note(told)

        def the_rest() -> SimpleNamespace:
            registered.append(len(kubelet.registrations))
            return SimpleNamespace(agent=agent)

        @contextlib.asynccontextmanager
        async def agent(_: Settings, early: EarlyPlugins, __: FolderLock) -> AsyncIterator[str]:
            assert len(early.servers) == 2
            ready.set()
            yield "http://there"

        monkeypatch.setattr(start, "_the_rest", the_rest)
        settings = Settings(folder, plugin=PluginSettings("node", kubelet.folder))
        async with running(start._serve(settings)), asyncio.timeout(30):
            await ready.wait()
        assert registered == [2 if has_begun_before else 0]
        assert not list(kubelet.plugins.glob("alnair-*.sock")), "nobody is served any more"


async def test_an_agent_that_stands_by_registers_when_the_one_before_it_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    imported, ready = asyncio.Event(), asyncio.Event()
    async with kubelet_sockets.kubelet() as kubelet:
        await kubelet.start()
        folder = kubelet.folder / "agent"
        before = FolderLock(folder)
        assert before.take()

        def the_rest() -> SimpleNamespace:
            loop.call_soon_threadsafe(imported.set)
            return SimpleNamespace(agent=agent)

        @contextlib.asynccontextmanager
        async def agent(_: Settings, __: EarlyPlugins, lock: FolderLock) -> AsyncIterator[str]:
            assert not before.take(), "the new one has the lock"
            assert sorted(kubelet.registrations) == sorted((names.GPU, names.VGPU))
            ready.set()
            yield "http://there"

        loop = asyncio.get_running_loop()
        monkeypatch.setattr(start, "_the_rest", the_rest)
        settings = Settings(folder, plugin=PluginSettings("node", kubelet.folder), stands_by=True)
        async with running(start._serve(settings)), asyncio.timeout(30):
            await imported.wait()
            # What the one before it tells last is what the new one begins with.
            told = {name: [PluginDevice("a")] for name in (names.GPU, names.VGPU)}
            ToldDevices(folder).note(told)
            assert kubelet.registrations == []
            before.release()
            await ready.wait()
        assert before.take(), "it has given the lock back"
        before.release()


async def test_two_agents_do_not_serve_one_folder(tmp_path: Path) -> None:
    before = FolderLock(tmp_path)
    assert before.take()
    with pytest.raises(OSError, match="in use by another agent: stop it, or give --folder"):
        await start._serve(Settings(tmp_path))
    before.release()
