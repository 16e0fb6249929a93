"""What a context costs is measured by the agent, kept, and reckoned by the library."""

import asyncio
import json
import re
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from alnair.node.cgroups import Proc
from alnair.node.nvml import NvmlGpu
from alnair.node.vgpu import context_costs
from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
from alnair.node.vgpu.context_costs import ContextCosts, joined, probe
from alnair.node.vgpu.context_probe import Measured, environment
from alnair.node.vgpu.server import VgpuServer
from native.fake import Fake
from native.server_kit import GPU, Group, limits
from native.test_agent_run import NOT_SANITIZED, OUT_OF_MEMORY, run
from native.test_server_restart import alnair, running, wait

MIB = 1 << 20
PROFILES = Path(__file__).parents[2] / "native" / "fakegpu" / "profiles"
#: (name of the profile, MiB of a context): one cheaper than the library's default, one dearer.
MODELS = [("t4", 104), ("h200", 522)]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[VgpuServer]:
    (tmp_path / "proc" / "self").mkdir(parents=True)
    mount = f"30 23 0:26 / {tmp_path} rw - cgroup2 cgroup2 rw\n"
    (tmp_path / "proc" / "self" / "mountinfo").write_text(mount)
    async with VgpuServer(tmp_path / "agent", Proc(tmp_path / "proc")) as found:
        yield found


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The GPUs that are probed: each says 600, 640, 640... MiB."""
    seen: list[str] = []

    async def measured(uuid: str, _: float) -> Measured:
        seen.append(uuid)
        return Measured((600 if len(seen) == 1 else 640) * MIB)

    monkeypatch.setattr(context_costs, "probe", measured)
    return seen


def gpu(number: int, model: str = "T") -> NvmlGpu:
    return NvmlGpu(number, f"{GPU[:-1]}{number}", model, 1 << 34)


def prepare(server: VgpuServer, name: str, **share: int) -> Callable[[], int]:
    """Prepare a container; return what reads the context's cost off its page."""
    wanted = ContainerSlices(
        name, ContainerMatch(cgroup=f"/{name}"), (Share(GPU, 1024, **share),), keep=True
    )
    assert server.prepare(wanted) == ""
    folder = server.folder / "containers" / name
    return lambda: int(limits(folder).device[0].context_bytes)


async def test_what_is_measured_goes_into_all_pages_without_a_figure_of_their_own(
    server: VgpuServer, probes: list[str]
) -> None:
    before, own = prepare(server, "before"), prepare(server, "own", context_mib=700)
    assert before() == 0
    costs = ContextCosts(server, (gpu(1), gpu(2), gpu(3, "other")), "1.0")
    await costs.run()
    assert probes == [gpu(1).uuid] * 3 + [gpu(3).uuid] * 3  # a model once
    assert costs.known == {gpu(n).uuid: 640 * MIB for n in (1, 2, 3)}
    assert (before(), prepare(server, "after")(), own()) == (640 * MIB, 640 * MIB, 700 * MIB)


async def test_a_restart_measures_nothing_and_a_new_driver_or_model_does(
    server: VgpuServer, probes: list[str]
) -> None:
    await ContextCosts(server, (gpu(1),), "1.0").run()
    again = ContextCosts(server, (gpu(1),), "1.0")
    await again.run()
    assert (len(probes), again.known) == (3, {GPU: 640 * MIB})
    await ContextCosts(server, (gpu(1),), "2.0").run()
    assert len(probes) == 6
    await ContextCosts(server, (gpu(1, "new"),), "2.0").run()
    assert len(probes) == 9
    await ContextCosts(server, (gpu(1),), "1.0").run()
    assert len(probes) == 9


async def test_a_stop_counts_while_the_measurement_of_a_former_driver_is_being_ended(
    server: VgpuServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, ending = asyncio.Event(), asyncio.Event()

    async def measured(uuid: str, _: float) -> Measured:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await asyncio.sleep(0.01)  # the probe's process is killed, and waited for
        return Measured(MIB)

    class Driver:
        opened, gpus, version = 1, (gpu(1),), "1.0"
        changed = asyncio.Event()

        async def reopened(self, opened: int) -> None:
            while self.opened <= opened:
                await self.changed.wait()

    monkeypatch.setattr(context_costs, "probe", measured)
    driver: Any = Driver()
    following = asyncio.create_task(ContextCosts(server).follow(driver))
    await began.wait()
    driver.opened, driver.version = 2, "2.0"
    driver.changed.set()
    await ending.wait()
    following.cancel()
    await asyncio.wait((following,), timeout=10)
    assert following.cancelled()


@pytest.mark.parametrize("content", [b"", b'{"version":1,"costs":[{}]}', b'{"version":2}', b"\0"])
async def test_a_file_that_cannot_be_read_is_measured_anew(
    server: VgpuServer, probes: list[str], content: bytes
) -> None:
    (server.folder / "context-costs").write_bytes(content)
    await ContextCosts(server, (gpu(1),), "1.0").run()
    await ContextCosts(server, (gpu(1),), "1.0").run()
    assert len(probes) == 3


async def test_what_is_said_by_hand_holds_and_nothing_is_measured(
    server: VgpuServer, probes: list[str]
) -> None:
    read = prepare(server, "a")
    quiet = ContextCosts(server, (gpu(1),), "1.0", probes=False)
    await quiet.run()
    assert (quiet.problems, read()) == ({GPU: "not measured"}, 0)
    # Also where NVML does not say which GPUs there are.
    await ContextCosts(server, given_mib=600).run()
    assert (probes, read()) == ([], 600 * MIB)


async def test_a_page_keeps_its_figure_while_a_server_that_comes_back_has_none(
    server: VgpuServer, tmp_path: Path, probes: list[str]
) -> None:
    read = prepare(server, "a")
    await ContextCosts(server, (gpu(1),), "1.0").run()
    await server.__aexit__()
    async with VgpuServer(tmp_path / "agent", Proc(tmp_path / "proc")):
        assert read() == 640 * MIB
    await server.__aenter__()


@pytest.mark.parametrize(
    ("tries", "bytes_", "problem"),
    [
        ([Measured(9 * MIB), Measured(7 * MIB)], 9 * MIB, ""),
        ([Measured(9 * MIB), Measured(problem="no")], 0, "no"),
        ([Measured(9)], 0, "cannot be true"),
        ([Measured(9 << 30)], 0, "cannot be true"),
        ([Measured(9 * MIB, whole_gpu=True), Measured(8 * MIB, whole_gpu=True)], 9 * MIB, ""),
        ([Measured(9 * MIB, whole_gpu=True), Measured(4 * MIB, whole_gpu=True)], 0, "others use"),
    ],
)
def test_tries_are_joined(tries: list[Measured], bytes_: int, problem: str) -> None:
    found = joined(tries)
    assert found.bytes == bytes_
    assert problem in found.problem
    assert bool(found.problem) == bool(problem)


def test_a_probe_sees_one_gpu_through_the_driver_itself() -> None:
    inherited = {
        "LD_PRELOAD": "x",
        "CUDA_MPS_PIPE_DIRECTORY": "y",
        "CUDA_CACHE_PATH": "z",
        "A": "b",
    }
    found = environment(GPU, inherited)
    expected = {"A": "b", "CUDA_VISIBLE_DEVICES": GPU, "CUDA_MPS_PIPE_DIRECTORY": "/dev/null"}
    assert found == expected


# ---- processes on the fake GPU -------------------------------------------------------------------


@contextmanager
def machine(profile: str, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Iterator[Fake]:
    """A fake GPU that the processes of this test find."""
    with Fake(profile) as fake:
        for name, value in fake.environment("a", **more).items():
            monkeypatch.setenv(name, value)
        yield fake


@pytest.mark.parametrize(("profile", "mib"), MODELS)
async def test_the_figure_is_what_the_driver_charges(
    monkeypatch: pytest.MonkeyPatch, profile: str, mib: int
) -> None:
    with machine(profile, monkeypatch) as fake:
        assert await probe(f"GPU-{fake.uuid()}", 20) == Measured(mib * MIB)
        # With pids of another namespace the whole GPU's growth is left to go by.
        monkeypatch.setenv("FAKEGPU_FAULT", "nvml_pids_inside=1")
        assert await probe(f"GPU-{fake.uuid()}", 20) == Measured(mib * MIB, whole_gpu=True)


@pytest.mark.parametrize(
    ("faults", "patience", "problem"),
    [
        ("slow_context_ms=60000", 1.5, "longer than 1.5 s"),
        ("kill=cuDevicePrimaryCtxRetain:1", 30.0, "ended the process (exit -9)"),
        (
            "fail=cuDevicePrimaryCtxRetain:1:2",
            30.0,
            "cuDevicePrimaryCtxRetain failed with CUresult 2",
        ),
    ],
)
async def test_a_driver_that_hangs_crashes_or_refuses_leaves_the_default(
    server: VgpuServer,
    monkeypatch: pytest.MonkeyPatch,
    faults: str,
    patience: float,
    problem: str,
) -> None:
    with machine("t4", monkeypatch, faults=faults) as fake:
        uuid = f"GPU-{fake.uuid()}"
        gpus = (NvmlGpu(0, uuid, "T", 1 << 34),)
        costs = ContextCosts(server, gpus, "1.0", patience_s=patience)
        task = asyncio.create_task(costs.run())
        began = time.monotonic()
        while costs.problems.get(uuid, "not measured yet") == "not measured yet":
            assert time.monotonic() - began < 60
            await asyncio.sleep(0.05)
        assert problem in costs.problems[uuid]
        assert costs.known == {}
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert prepare(server, "a")() == 0


async def test_without_a_driver_a_probe_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.delenv("FAKEGPU_STATE", raising=False)
    assert (await probe(GPU, 20)).problem


def known(folder: Path) -> int:
    (one,) = json.loads(alnair(folder, "status", "--json").stdout)["gpus"]
    return int(one["context_bytes"])


@NOT_SANITIZED
@pytest.mark.parametrize(("profile", "mib"), MODELS)
def test_a_container_has_its_limit_less_exactly_what_a_context_costs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, profile: str, mib: int
) -> None:
    Group().close()
    with machine(profile, monkeypatch) as fake, running(tmp_path) as agent:
        wait(lambda: known(tmp_path) == mib * MIB, 20)
        assert f", a context {mib} MiB\n" in alnair(tmp_path, "status").stdout
        figures = urllib.request.urlopen(agent.url).read().decode()
        name = f'alnair_vgpu_context_bytes{{gpu="GPU-{fake.uuid()}"}}'
        (cost,) = re.findall(f"^{name} (.*)$", figures, re.MULTILINE)
        assert float(cost) == mib * MIB
        fake.watch((mib + 1000) * MIB)
        for asked, said in ((1000, "held"), (1002, OUT_OF_MEMORY)):
            done = run(tmp_path, "--memory", mib + 1000, "--", asked)
            assert done.communicate()[0].strip() == said
        assert fake.over() == (0, 0)


def test_an_agent_measures_again_when_the_driver_is_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with machine("t4", monkeypatch) as fake:
        made = []
        for version in ("13050", "13050", "12040"):
            monkeypatch.setenv("FAKEGPU_CUDA", version)
            with running(tmp_path):
                wait(lambda: known(tmp_path) == 104 * MIB, 20)
            made.append(fake.calls("cuDevicePrimaryCtxRetain"))
    assert made == [3, 3, 6]


def test_an_agent_serves_while_a_probe_hangs_and_ends_with_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (
        machine("t4", monkeypatch, faults="slow_context_ms=60000"),
        running(tmp_path) as agent,
    ):
        assert "a context 512 MiB (not measured yet)" in alnair(tmp_path, "status").stdout
        children = Path(f"/proc/{agent.process.pid}/task/{agent.process.pid}/children")
        wait(lambda: bool(children.read_text().split()))
        (probing,) = children.read_text().split()
        assert agent.end() == 0
        wait(lambda: not Path(f"/proc/{probing}").exists())
