"""Processes are killed in the middle of a replay, while the checker judges every instant."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from alnair.kube.client import Client
from alnair.kube.resources import PODS
from alnair.local.controlplane import LocalCluster
from kit.command import COMMAND

from .conftest import COUNT, NODES

Trace = Callable[..., tuple[object, ...]]
Kill = Callable[[LocalCluster], Awaitable[None]]


async def kill_scheduler(cluster: LocalCluster) -> None:
    await cluster.stop("alnair-scheduler", signal.SIGKILL)
    await asyncio.sleep(0.5)
    await cluster.start("alnair-scheduler")


async def kill_api_server(cluster: LocalCluster) -> None:
    await cluster.stop("kube-apiserver", signal.SIGKILL)
    await asyncio.sleep(0.5)
    await cluster.start("kube-apiserver")


Start = Callable[..., Awaitable[asyncio.subprocess.Process]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts `alnair`; what still runs after the test is killed."""
    started: list[asyncio.subprocess.Process] = []

    async def run(*arguments: object) -> asyncio.subprocess.Process:
        started.append(
            await asyncio.create_subprocess_exec(
                *COMMAND,
                *map(str, arguments),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        )
        return started[-1]

    yield run
    for process in started:
        if process.returncode is None:
            process.kill()
            await process.communicate()


@pytest.mark.parametrize("kill", [kill_scheduler, kill_api_server])
async def test_it_completes_and_no_promise_was_broken_at_any_instant(
    replay_cluster: LocalCluster, admin: Client, small_trace: Trace, kill: Kill, start: Start
) -> None:
    at = ("--kubeconfig", replay_cluster.kubeconfig())
    options = small_trace("--json", "--rate", 20, *at)
    namespace = str(options[options.index("--namespace") + 1])
    watch = await start(
        "check", "--watch", "--json", "--namespace", namespace, "--expect-pods", COUNT, *at
    )
    await asyncio.sleep(2)
    replay = await start("replay", *options)
    for _ in range(200):
        await asyncio.sleep(0.1)
        pods = (await admin.list(PODS, namespace)).items
        if sum(bool(pod["spec"].get("nodeName")) for pod in pods) > COUNT // 5:
            break
    await kill(replay_cluster)
    output, said = await asyncio.wait_for(replay.communicate(), 150)
    assert replay.returncode == 0, said.decode()
    report = json.loads(output.splitlines()[-1])
    assert report["placed"] == COUNT - 13
    watch.send_signal(signal.SIGINT)
    output, said = await asyncio.wait_for(watch.communicate(), 30)
    assert json.loads(output) == {
        "ok": True,
        "nodes": NODES,
        "pods": COUNT,
        "bound": COUNT - 13,
        "violations": [],
    }, said.decode()
    assert watch.returncode == 0
