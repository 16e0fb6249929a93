"""The care for an MPS daemon, with a stand-in that can be killed, hang and fail."""

import asyncio
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from alnair.node.mps import (
    MOST_CLIENTS,
    MpsDaemon,
    MpsHealth,
    MpsOptions,
    MpsState,
    client_variables,
    restart_delay,
)
from alnair.node.mps_control import MpsError
from native.mps_kit import ask, cared_for, faults, healthy, is_gone, options, pid_of, until


@pytest.fixture(autouse=True)
def _nothing_stays(tmp_path: Path) -> Iterator[None]:
    """A daemon that has clients outlives its agent, and must not outlive the test."""
    yield
    with suppress(OSError):
        os.kill(pid_of(tmp_path), signal.SIGKILL)


async def test_a_daemon_is_started_with_its_limits_and_stopped(tmp_path: Path) -> None:
    daemon = MpsDaemon(options(tmp_path, percent=40, memory_mib={0: 2048}, gpus=("GPU-a", "GPU-b")))
    async with cared_for(daemon):
        await healthy(daemon)
        pid = pid_of(tmp_path)
        assert daemon.health.missing == ""
        assert await ask(tmp_path, "get_default_active_thread_percentage") == "40.0"
        assert await ask(tmp_path, "get_default_device_pinned_mem_limit 0") == "2048M"
        await daemon.set_percent(55)
        assert await ask(tmp_path, "get_default_active_thread_percentage") == "55.0"
        with pytest.raises(MpsError, match="Invalid percentage"):
            await daemon.set_percent(0)
    assert daemon.health.state is MpsState.STOPPED
    assert is_gone(pid)
    assert not (tmp_path / "daemon").exists()
    assert (tmp_path / "log" / "control.log").read_text() == f"{pid} starts for GPU-a,GPU-b\n"


async def test_servers_and_clients_are_counted_and_the_room_for_them_ends(tmp_path: Path) -> None:
    daemon = MpsDaemon(options(tmp_path))
    async with cared_for(daemon):
        await healthy(daemon)
        await ask(tmp_path, "connect 501 1000\nconnect 502 1000\nconnect 503 1001")
        await until(lambda: len(daemon.health.clients) == 3)
        assert len(daemon.health.servers) == 2
        assert daemon.health.missing == ""
        more = "\n".join(f"connect {1000 + i} 1000" for i in range(MOST_CLIENTS - 3))
        await ask(tmp_path, more)
        await until(lambda: len(daemon.health.clients) == MOST_CLIENTS)
        assert daemon.health.missing == "the MPS daemon serves 48 clients, of at most 48"


async def test_a_killed_daemon_is_replaced_with_the_same_limits(tmp_path: Path) -> None:
    daemon = MpsDaemon(options(tmp_path, percent=30))
    async with cared_for(daemon):
        await healthy(daemon)
        for killed in range(1, 4):
            first = pid_of(tmp_path)
            os.kill(first, signal.SIGKILL)
            await healthy(daemon, restarts=killed)
            assert pid_of(tmp_path) != first
            assert daemon.health.why == "it ended unasked (signal 9)"
        assert await ask(tmp_path, "get_default_active_thread_percentage") == "30.0"
    assert daemon.health.restarts == 3


async def test_a_daemon_that_hangs_is_killed_and_replaced(tmp_path: Path) -> None:
    daemon = MpsDaemon(options(tmp_path, answer_s=1.0))
    async with cared_for(daemon):
        await healthy(daemon)
        first = pid_of(tmp_path)
        faults(tmp_path, "hang")
        await until(lambda: daemon.health.state is MpsState.SICK)
        assert "no answer to 'get_server_list' within 1 s" in daemon.health.missing
        await until(lambda: is_gone(first))
        faults(tmp_path, "")
        await healthy(daemon, restarts=1)
        assert pid_of(tmp_path) != first


async def test_a_stopped_daemon_is_killed_for_it_hears_no_other_signal(tmp_path: Path) -> None:
    daemon = MpsDaemon(options(tmp_path, answer_s=1.0))
    async with cared_for(daemon):
        await healthy(daemon)
        first = pid_of(tmp_path)
        os.kill(first, signal.SIGSTOP)
        await healthy(daemon, restarts=1)
        assert is_gone(first)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("no-start", "no GPU"),
        ("die", "it (did not start|ended)"),
        ("error", "refused"),
        ("chatter", "instead of pids"),
    ],
)
async def test_a_storm_of_failures_is_slowed_down_and_ends_when_its_cause_does(
    tmp_path: Path, fault: str, why: str
) -> None:
    faults(tmp_path, fault)
    # Only who refuses is asked again for all of this time, at each of the starts.
    daemon = MpsDaemon(options(tmp_path, **({"answer_s": 2.0} if fault == "error" else {})))
    async with cared_for(daemon):
        await until(lambda: daemon.health.restarts >= 3)
        assert re.search(why, daemon.health.why), daemon.health.why
        assert daemon.health.missing
        begun, before = time.monotonic(), daemon.health.restarts
        await asyncio.sleep(0.8)
        # After three failures each restart waits for most_delay_s.
        most = (time.monotonic() - begun) / 0.4 + 1
        assert daemon.health.restarts - before <= most
        faults(tmp_path, "")
        await healthy(daemon)


async def test_a_program_that_is_not_there_is_a_reason_and_no_crash(tmp_path: Path) -> None:
    daemon = MpsDaemon(options(tmp_path, command=(str(tmp_path / "nothing"),)))
    async with cared_for(daemon) as task:
        await until(lambda: daemon.health.restarts >= 2)
        assert "No such file" in daemon.health.missing
        assert not task.done()


async def test_a_daemon_with_clients_outlives_its_agent_and_is_taken_over(tmp_path: Path) -> None:
    former = MpsDaemon(options(tmp_path))
    async with cared_for(former):
        await healthy(former)
        pid = pid_of(tmp_path)
        await ask(tmp_path, "connect 501 1000")
    assert former.health.state is MpsState.STOPPED
    assert not is_gone(pid)
    daemon = MpsDaemon(options(tmp_path))
    async with cared_for(daemon):
        await healthy(daemon)
        assert (pid_of(tmp_path), daemon.health.clients) == (pid, (501,))
        os.kill(pid, signal.SIGKILL)
        await healthy(daemon, restarts=1)
        assert pid_of(tmp_path) != pid


async def test_a_daemon_that_was_taken_over_and_hangs_is_replaced(tmp_path: Path) -> None:
    former = MpsDaemon(options(tmp_path))
    async with cared_for(former):
        await healthy(former)
        pid = pid_of(tmp_path)
        await ask(tmp_path, "connect 501 1000")
    daemon = MpsDaemon(options(tmp_path, answer_s=1.0))
    async with cared_for(daemon):
        await healthy(daemon)
        faults(tmp_path, "hang")
        await until(lambda: is_gone(pid))
        faults(tmp_path, "")
        await healthy(daemon, restarts=1)


async def test_a_pid_that_means_another_process_now_is_left_alone(tmp_path: Path) -> None:
    other = await asyncio.create_subprocess_exec("sleep", "60")
    (tmp_path / "daemon").write_text(f"{other.pid} 1\n")
    daemon = MpsDaemon(options(tmp_path))
    async with cared_for(daemon):
        await healthy(daemon)
    assert other.returncode is None
    other.kill()
    await other.wait()


async def test_a_stop_ends_a_daemon_that_does_not_answer(tmp_path: Path) -> None:
    daemon = MpsDaemon(options(tmp_path, answer_s=1.0))
    async with cared_for(daemon):
        await healthy(daemon)
        pid = pid_of(tmp_path)
        faults(tmp_path, "hang")
    assert is_gone(pid)


async def test_a_stop_counts_even_if_an_answer_comes_at_that_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = MpsDaemon(options(tmp_path))
    communicate = asyncio.subprocess.Process.communicate
    async with cared_for(daemon) as task:
        await healthy(daemon)

        async def stopped(process: asyncio.subprocess.Process, said: bytes) -> object:
            monkeypatch.undo()
            answer = await communicate(process, said)
            asyncio.get_running_loop().call_soon(task.cancel)
            return answer

        monkeypatch.setattr(asyncio.subprocess.Process, "communicate", stopped)
        await until(task.done)
    assert daemon.health.state is MpsState.STOPPED


def test_the_delay_before_a_restart_doubles_up_to_a_bound(tmp_path: Path) -> None:
    its = MpsOptions(folder=tmp_path)
    assert [restart_delay(its, n) for n in (1, 2, 3, 7, 10_000)] == [1.0, 2.0, 4.0, 60.0, 60.0]


def test_a_client_finds_its_daemon_and_its_limits_by_variables(tmp_path: Path) -> None:
    its = MpsOptions(folder=tmp_path)
    assert client_variables(its) == {"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path / "pipe")}
    assert client_variables(its, percent=25, memory_mib={1: 512, 0: 1024}) == {
        "CUDA_MPS_PIPE_DIRECTORY": str(tmp_path / "pipe"),
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=1024M,1=512M",
    }


def test_health_says_why_no_client_can_come() -> None:
    assert MpsHealth(state=MpsState.STARTING).missing == "the MPS daemon is starting"
