"""Plugins stay registered, whatever becomes of the kubelet and of the sockets."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from alnair.node.kubelet import registration
from alnair.node.kubelet.other_plugin import OtherPlugin
from alnair.node.kubelet.plugin_server import PluginServer
from alnair.node.kubelet.registration import Registrations
from kit.device_plugin import Plugin
from kit.kubelet_sockets import PATIENCE, Kubelet
from kit.manual_clock import running

ONE, TWO = "test/one", "test/two"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration, "EVERY", 0.01)
    monkeypatch.setattr(registration, "_LAST_WAIT", 0.02)


class Log(logging.Handler):
    """What is warned of."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.news = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self.news.set()

    def count(self, text: str) -> int:
        return sum(text in line for line in self.lines)

    async def said(self, text: str) -> None:
        """Wait until it is."""
        async with asyncio.timeout(PATIENCE):
            while not self.count(text):
                self.news.clear()
                await self.news.wait()


@pytest.fixture
def log() -> Iterator[Log]:
    found, logger = Log(), logging.getLogger(registration.__name__)
    logger.addHandler(found)
    yield found
    logger.removeHandler(found)


@pytest.fixture
async def servers(kubelet: Kubelet, log: Log) -> AsyncIterator[list[PluginServer]]:
    servers = [PluginServer(kubelet.plugins, Plugin(name)) for name in (ONE, TWO)]
    async with running(Registrations(kubelet.plugins, servers).run()):
        yield servers
    assert not list(kubelet.plugins.glob("*alnair*"))


async def test_a_kubelet_that_comes_late_is_waited_for(
    kubelet: Kubelet, servers: list[PluginServer], log: Log
) -> None:
    await log.said("there is no kubelet at")
    assert not [server for server in servers if server.is_there]
    await kubelet.start()
    await kubelet.registered(ONE, TWO)
    assert sorted(kubelet.registrations) == [ONE, TWO]
    assert log.count("there is no kubelet at") == 1


async def test_a_kubelet_that_restarts_is_told_again(
    kubelet: Kubelet, servers: list[PluginServer]
) -> None:
    await kubelet.start()
    for _ in range(3):
        await kubelet.registered(ONE, TWO)
        await kubelet.restart()
    await kubelet.registered(ONE, TWO)
    assert sorted(kubelet.registrations) == [ONE] * 4 + [TWO] * 4


async def test_a_socket_that_was_removed_is_made_anew(
    kubelet: Kubelet, servers: list[PluginServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    await kubelet.start()
    await kubelet.registered(ONE, TWO)
    # The old stream's end may disconnect the new plugin, which is registered once more then.
    monkeypatch.setattr(registration, "_UNWATCHED", 0.1)
    first = kubelet.endpoints[ONE]
    (kubelet.plugins / "alnair-test-one.sock").unlink()
    await kubelet.until(lambda: kubelet.endpoints[ONE] is not first)
    await kubelet.registered(ONE, TWO)
    assert kubelet.registrations.count(TWO) == 1


async def test_a_plugin_that_the_kubelet_does_not_watch_is_registered_again(
    kubelet: Kubelet, servers: list[PluginServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    await kubelet.start()
    await kubelet.registered(ONE, TWO)
    monkeypatch.setattr(registration, "_UNWATCHED", 0.1)
    first = kubelet.endpoints[ONE]
    await first.channel.close()
    await kubelet.until(lambda: kubelet.endpoints[ONE] is not first)
    await kubelet.registered(ONE, TWO)
    assert kubelet.registrations.count(TWO) == 1


async def test_a_plugin_whose_predecessor_takes_it_along_is_registered_at_once(
    kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kubelet.start()
    before = PluginServer(kubelet.plugins, Plugin(ONE))
    await before.serve()
    await before.register()
    await kubelet.registered(ONE)
    monkeypatch.setattr(registration, "EVERY", 3600.0)
    async with running(
        Registrations(kubelet.plugins, [PluginServer(kubelet.plugins, Plugin(ONE))]).run()
    ):
        await kubelet.until(lambda: len(kubelet.registrations) == 2)
        await kubelet.registered(ONE)
        await before.stop()  # by which the kubelet disconnects the new one
        await kubelet.until(lambda: len(kubelet.registrations) == 3)
        await kubelet.registered(ONE)


async def test_a_kubelet_that_refuses_is_asked_until_it_does_not(
    kubelet: Kubelet, servers: list[PluginServer], log: Log
) -> None:
    kubelet.refusal = "the ResourceName is invalid"
    await kubelet.start()
    await log.said("does not take the plugins: the ResourceName is invalid")
    kubelet.refusal = ""
    await kubelet.registered(ONE, TWO)
    assert log.count("does not take the plugins") == 1


async def test_a_kubelet_may_die_in_the_middle_of_a_registration(
    kubelet: Kubelet, servers: list[PluginServer], log: Log
) -> None:
    kubelet.die_when_asked = True
    await kubelet.start()
    await log.said("does not take the plugins")
    assert not kubelet.registrations
    await kubelet.start()
    await kubelet.registered(ONE, TWO)


async def test_a_folder_in_which_nothing_can_be_served_is_said_and_tried_again(
    kubelet: Kubelet, servers: list[PluginServer], log: Log
) -> None:
    blocked = kubelet.plugins / "alnair-test-two.sock"
    (blocked / "inside").mkdir(parents=True)
    await kubelet.start()
    await log.said("the plugins cannot be served in")
    await kubelet.registered(ONE)
    (blocked / "inside").rmdir()
    blocked.rmdir()
    await kubelet.registered(ONE, TWO)


async def test_nothing_is_registered_twice_without_a_reason(
    kubelet: Kubelet, servers: list[PluginServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    await kubelet.start()
    await kubelet.registered(ONE, TWO)
    looks = asyncio.Semaphore(0)
    identity = registration.identity

    def counted(path: Path) -> tuple[int, int]:
        looks.release()
        (kubelet.folder / "device-plugins" / "noise").write_text(
            ""
        )  # a folder without changes is not looked into
        return identity(path)

    monkeypatch.setattr(registration, "identity", counted)
    for _ in range(20):
        await asyncio.wait_for(looks.acquire(), PATIENCE)
    assert [server.watched for server in servers] == [1, 1]
    assert sorted(kubelet.registrations) == [ONE, TWO]


@asynccontextmanager
async def beside(kubelet: Kubelet) -> AsyncIterator[tuple[Registrations, list[PluginServer]]]:
    """Our plugins, of which the first is left to another."""
    servers = [PluginServer(kubelet.plugins, Plugin(name)) for name in (ONE, TWO)]
    other = OtherPlugin(kubelet.plugins, ONE)
    found = Registrations(kubelet.plugins, servers, {ONE: other})
    async with running(found.run()):
        yield found, servers


async def test_a_resource_is_left_to_the_plugin_that_is_there(kubelet: Kubelet) -> None:
    await kubelet.start()
    (kubelet.plugins / "nvidia-gpu.sock").touch()
    async with beside(kubelet) as (_, servers):
        await kubelet.registered(TWO)
        assert not servers[0].is_there
        # Also when the kubelet has restarted, and the other plugin is not back yet.
        (kubelet.plugins / "nvidia-gpu.sock").unlink()
        await kubelet.restart()
        await kubelet.registered(TWO)
    assert kubelet.registrations == [TWO, TWO]


async def test_a_resource_that_no_other_plugin_serves_is_ours_again_and_again(
    kubelet: Kubelet,
) -> None:
    await kubelet.start()
    for _ in range(2):  # the second agent finds traces of the first
        async with beside(kubelet):
            await kubelet.registered(ONE, TWO)
            await kubelet.restart()
            await kubelet.registered(ONE, TWO)
        await kubelet.until(lambda: not kubelet.endpoints or kubelet.endpoints[ONE].stopped)
    assert kubelet.registrations.count(ONE) == 4


async def test_a_plugin_that_comes_after_ours_is_warned_of_and_not_cut_off(
    kubelet: Kubelet, log: Log
) -> None:
    await kubelet.start()
    async with beside(kubelet) as (_, servers):
        await kubelet.registered(ONE, TWO)
        (kubelet.plugins / "nvidia-gpu.sock").touch()
        await log.said("another plugin has come for test/one")
        # To end our stream would disconnect the other plugin.
        assert servers[0].is_there
        assert servers[0].watched == 1
    assert log.count("another plugin has come") == 1


async def test_it_ends_when_the_kubelet_hangs_up_in_the_moment_of_the_end(tmp_path: Path) -> None:
    registrations = Registrations(tmp_path, [])
    task = asyncio.create_task(registrations.run())
    await asyncio.wait_for(registrations.looked.wait(), 30)
    await asyncio.sleep(0)
    registrations._hung_up.set()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 30)
