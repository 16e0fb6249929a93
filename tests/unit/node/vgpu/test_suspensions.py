"""Which containers are suspended: what pods say, what people say, and what is not known yet."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from alnair.node.vgpu.containers.container_slices import (
    ContainerMatch,
    ContainerSlices,
    OwningPod,
    Share,
)
from alnair.node.vgpu.server import VgpuServer
from alnair.node.vgpu.suspensions import Suspensions

UUID = "GPU-00000000-0000-0000-0000-000000000000"


class Driver:
    """Says what it is told to say."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[int]]] = []
        self.says = ""

    async def ask(self, verb: str, pids: Iterable[int]) -> str:
        self.asked.append((verb, list(pids)))
        return self.says


def container(name: str, pod: str = "") -> ContainerSlices:
    match = ContainerMatch(pod=pod) if pod else ContainerMatch(cgroup=f"/{name}")
    owner = OwningPod("team", name, pod, "main") if pod else OwningPod()
    return ContainerSlices(name, match, (Share(UUID, 1000),), owner)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[VgpuServer]:
    async with VgpuServer(tmp_path) as found:
        assert not found.prepare(container("mine")) + found.prepare(container("theirs", "uid"))
        yield found


def suspended(server: VgpuServer) -> set[str]:
    return {name for name, one in server.containers.items() if one.suspended}


async def test_a_pod_rests_while_it_says_so(server: VgpuServer) -> None:
    pods: set[str] = {"uid", "another"}
    suspensions = Suspensions(server, enabled=True, pods=lambda: pods)
    await suspensions.look()
    assert suspended(server) == {"theirs"}
    assert server.containers["theirs"].released
    pods.clear()
    await suspensions.look()
    assert suspended(server) == set()
    assert not server.containers["theirs"].is_refused


async def test_nothing_is_done_while_the_pods_are_not_known(server: VgpuServer) -> None:
    server.containers["theirs"].suspend()
    suspensions = Suspensions(server, enabled=True, pods=lambda: None)
    assert suspensions.want("mine", suspended=True) == ""
    await suspensions.look()
    assert suspended(server) == {"mine", "theirs"}
    assert not server.containers["theirs"].released, "the driver was not asked"


async def test_a_pod_that_asks_an_agent_that_may_not_is_told_so_once(server: VgpuServer) -> None:
    pods, told = {"uid"}, list[tuple[str, bool, str]]()
    suspensions = Suspensions(
        server,
        enabled=False,
        pods=lambda: pods,
        tell=lambda one, on, why: told.append((one.assignment.name, on, why)),
    )
    await suspensions.look()
    await suspensions.look()
    assert suspended(server) == set()
    ((name, on, why),) = told
    assert (name, on) == ("theirs", True)
    assert "start it with --suspend" in why
    pods.clear()
    await suspensions.look()
    assert suspensions.problems == {}
    pods.add("uid")
    await suspensions.look()
    assert len(told) == 2


async def test_an_agent_that_may_not_resumes_who_rests(server: VgpuServer) -> None:
    server.containers["theirs"].suspend()
    suspensions = Suspensions(server, enabled=False, pods=lambda: {"uid"})
    await suspensions.look()
    assert suspended(server) == set()


async def test_who_rests_still_does_after_a_restart(tmp_path: Path) -> None:
    async with VgpuServer(tmp_path) as before:
        assert not before.prepare(container("mine"))
        before.containers["mine"].suspend()
    async with VgpuServer(tmp_path) as after:
        assert suspended(after) == {"mine"}
        assert after.containers["mine"].is_refused
        suspensions = Suspensions(after, enabled=True)
        await suspensions.look()
        assert after.containers["mine"].released
        assert suspensions.want("mine", suspended=False) == ""
        await suspensions.look()
    async with VgpuServer(tmp_path) as last:
        assert suspended(last) == set()
        assert not last.containers["mine"].is_refused


async def test_what_failed_is_told_once_and_tried_again_later(
    server: VgpuServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, bool, str]] = []
    driver = Driver()
    driver.says = "no"
    mine = server.containers["mine"]
    monkeypatch.setattr(type(mine.census), "pids", {7: 0})
    suspensions = Suspensions(
        server,
        enabled=True,
        tell=lambda one, on, why: told.append((one.assignment.name, on, why)),
        ask=driver.ask,
    )
    assert suspensions.want("mine", suspended=True) == ""
    for _ in range(3):
        await suspensions.look()
    assert driver.asked == [("suspend", [7])], "it rests for a while"
    assert (told, mine.suspended, mine.is_refused) == ([("mine", True, "no")], False, False)
    driver.says = ""
    assert suspensions.want("mine", suspended=True) == "", "a person need not wait"
    await suspensions.look()
    assert mine.released
    driver.says = "no memory"
    assert suspensions.want("mine", suspended=False) == ""
    await suspensions.look()
    assert (mine.suspended, mine.released) == (True, True)
    assert told[1:] == [("mine", True, ""), ("mine", False, "no memory")]
