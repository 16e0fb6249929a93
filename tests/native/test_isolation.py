"""The agent keeps what its node offers, and acts on it."""

import asyncio
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from alnair.cli import main
from alnair.node import isolation, memory_limits
from alnair.node.cgroups import Proc
from alnair.node.isolation import Isolation
from alnair.node.memory_limits import MemoryLimit
from alnair.node.mps import MpsDaemon
from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
from alnair.node.vgpu.server import VgpuServer
from alnair.sharing.tiers import Offer, Tier
from native.fake import Fake
from native.mps_kit import STAND_IN, faults, healthy, is_gone, options, pid_of, until

MIB = 1 << 20


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[VgpuServer]:
    """On a machine whose control groups are of version 2 only, in a folder."""
    (tmp_path / "groups" / "mine").mkdir(parents=True)
    (tmp_path / "proc" / "self").mkdir(parents=True)
    mount = f"30 23 0:26 / {tmp_path / 'groups'} rw - cgroup2 cgroup2 rw\n"
    (tmp_path / "proc" / "self" / "mountinfo").write_text(mount)
    async with VgpuServer(tmp_path / "agent", Proc(tmp_path / "proc")) as found:
        yield found


@asynccontextmanager
async def running(kept: Isolation) -> AsyncIterator[None]:
    task = asyncio.create_task(kept.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_node_with_a_new_driver_has_it_limit_its_containers(
    fake: Fake, gpu: object, server: VgpuServer, tmp_path: Path
) -> None:
    kept = Isolation(server)
    async with running(kept):
        await until(lambda: kept.offer.memory is Tier.DRIVER)
        assert kept.offer.label == "A-B"
        shares = (Share(f"GPU-{fake.uuid()}", memory_mib=512),)
        assert (
            server.prepare(ContainerSlices("a", ContainerMatch(cgroup="/mine"), shares, keep=True))
            == ""
        )
        folder = tmp_path / "groups" / "mine"
        expected = MemoryLimit(512 * MIB, 512 * MIB, 0)
        await until(lambda: memory_limits.read(gpu, folder) == expected)


async def test_a_node_with_an_older_driver_has_the_interposer(
    gpu: object, server: VgpuServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKEGPU_CUDA", "13000")
    kept = Isolation(server)
    await kept.look()
    assert kept.offer.label == "B-B"


async def test_without_nvml_the_interposer_is_left_and_the_reason_told(server: VgpuServer) -> None:
    kept = Isolation(server, driver=SimpleNamespace(opened=0, problem="there is no driver"))
    await kept.look()
    assert kept.offer.label == "B-B"
    missing = {standing.tier: standing.missing for standing in kept.offer.standings}
    assert missing[Tier.DETECT] == "there is no driver"


async def test_a_node_without_the_library_says_so(
    gpu: object, server: VgpuServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "interposer", lambda: None)
    kept = Isolation(server)
    await kept.look()
    assert kept.offer.label == "A-D"
    missing = {standing.tier: standing.missing for standing in kept.offer.standings}
    assert missing[Tier.INTERPOSER] == "libalnair_vgpu.so is not installed"


async def test_what_is_offered_is_told_until_it_is_heard(gpu: object, server: VgpuServer) -> None:
    heard: list[str] = []
    deaf = 2

    async def tell(found: Offer) -> str:
        nonlocal deaf
        deaf -= 1
        if deaf >= 0:
            return "no API server"
        heard.append(found.label)
        return ""

    kept = Isolation(server, tell=tell)
    for _ in range(5):
        await kept.look()
    assert heard == ["A-B"]


async def test_a_gpu_that_is_lost_does_not_end_the_looking(
    fake: Fake, gpu: object, server: VgpuServer
) -> None:
    kept = Isolation(server)
    fake.xid(79)
    await kept.look()
    assert kept.offer.memory is Tier.INTERPOSER


async def test_mps_is_offered_while_its_daemon_is_well(
    gpu: object, server: VgpuServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "EVERY", 0.05)
    daemon = MpsDaemon(options(tmp_path / "mps"))
    kept = Isolation(server, daemon)
    async with running(kept):
        await healthy(daemon)
        await until(lambda: kept.offer.compute is Tier.MPS)
        faults(tmp_path / "mps", "error")
        await until(lambda: kept.offer.compute is Tier.INTERPOSER)
        faults(tmp_path / "mps", "")
        await until(lambda: kept.offer.compute is Tier.MPS)


def test_an_agent_told_to_runs_mps_and_says_so(fake: Fake, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "nvidia-cuda-mps-control"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(STAND_IN)} "$@"\n')
    program.chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    environment = {**os.environ, **fake.environment(PATH=path, PYTHONWARNINGS="ignore")}
    alnair = [sys.executable, "-m", "alnair", "agent"]
    folder = ["--folder", str(tmp_path / "agent")]
    options = ["--metrics", "127.0.0.1:0", "--mps", "--mps-percent", "40", "--mps-memory", "512"]
    with subprocess.Popen(
        [*alnair, *folder, *options], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            assert process.stdout.readline().startswith("ready")
            deadline = time.monotonic() + 20
            while True:
                said = (
                    CliRunner().invoke(main.build(["agent"]), ["agent", "status", *folder]).stdout
                )
                if "MPS: healthy, 0 clients" in said or time.monotonic() > deadline:
                    break
                time.sleep(0.05)
            assert "MPS: healthy, 0 clients" in said
            assert "isolation B-" in said or "isolation A-" in said
            pid = pid_of(tmp_path / "agent" / "mps")
        finally:
            process.send_signal(signal.SIGTERM)
    assert process.returncode == 0
    assert is_gone(pid)
