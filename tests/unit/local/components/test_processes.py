"""Processes are found by their mark, and are dead only when nothing of them is left."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from alnair.local.components import processes

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def spawn(folder: Path, *command: str, component: str = "one") -> psutil.Process:
    found = processes.spawn(
        folder, component, command or SLEEP, "digest", folder / "one.log", os.environ
    )
    assert found is not None
    return found


async def until(holds: Callable[[], bool]) -> None:
    """Waits for what another process does in its own time."""
    async with asyncio.timeout(20):
        while True:
            if holds():
                return
            await asyncio.sleep(0.01)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path.resolve()


async def test_a_process_is_found_by_its_mark_until_it_is_stopped(folder: Path) -> None:
    started = spawn(folder)
    found = processes.components(processes.find(folder))
    assert {name: (one.pid, one.command) for name, one in found.items()} == {
        "one": (started.pid, "digest")
    }
    assert processes.find(folder / "other") == []
    await processes.stop([started], signal.SIGTERM, 5)
    assert not processes.is_alive(started)
    assert processes.find(folder) == []


async def test_a_process_is_nobodys_child_and_has_a_session_of_its_own(folder: Path) -> None:
    started = spawn(folder)
    assert started.ppid() != os.getpid()
    assert os.getsid(started.pid) != os.getsid(0)
    assert Path(started.cwd()) == folder
    await processes.stop([started], signal.SIGKILL, 5)


async def test_children_belong_to_their_component_and_are_stopped_with_it(folder: Path) -> None:
    parent = spawn(folder, "/bin/sh", "-c", "sleep 60 & wait")
    await until(lambda: len(processes.find(folder)) == 2)
    found = processes.find(folder)
    assert processes.components(found)["one"].pid == parent.pid
    await processes.stop([one.process for one in found], signal.SIGTERM, 5)
    assert processes.find(folder) == []


async def test_a_process_that_ignores_the_signal_is_killed_at_the_deadline(folder: Path) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True)"
    )
    started = spawn(folder, sys.executable, "-c", f"{deaf}; time.sleep(60)")
    log = folder / "one.log"
    # The process opens it, after `spawn` has returned perhaps.
    await until(lambda: log.exists() and bool(log.read_text()))
    await processes.stop([started], signal.SIGTERM, 0.2)
    assert not processes.is_alive(started)


async def test_a_suspended_process_is_stopped_too(folder: Path) -> None:
    started = spawn(folder)
    started.suspend()
    await processes.stop([started], signal.SIGTERM, 5)
    assert not processes.is_alive(started)


def test_a_program_that_is_not_there_says_so_in_its_log(folder: Path) -> None:
    spawn_result = processes.spawn(
        folder, "one", [str(folder / "none")], "d", folder / "one.log", os.environ
    )
    assert spawn_result is None or psutil.wait_procs([spawn_result], timeout=20)[1] == []
    assert "not found" in processes.last_words(folder / "one.log")


def test_a_large_log_is_set_aside_at_a_start(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_LOG_LIMIT", 10)
    (folder / "one.log").write_text("much too much")
    started = spawn(folder)
    assert (folder / "one.log.1").read_text() == "much too much"
    started.kill()


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("", "it wrote no log"),
        ("a\nlast\n", "last"),
        ("I1 fine\nE1121 12:00:00 bad thing\nI1 after\n", "E1121 12:00:00 bad thing"),
        ("Error: unknown flag: --x\nUsage:\n  kube-apiserver\n", "Error: unknown flag: --x"),
        ("Traceback\n  File x\nValueError: no\n", "ValueError: no"),
        ('{"level":"info"}\n{"level":"fatal","msg":"m"}\nx\n', '{"level":"fatal","msg":"m"}'),
    ],
)
def test_the_last_words_are_those_that_give_a_reason(tmp_path: Path, log: str, words: str) -> None:
    (tmp_path / "log").write_text(log)
    assert processes.last_words(tmp_path / "log") == words


def test_without_a_log_there_are_no_last_words(tmp_path: Path) -> None:
    assert processes.last_words(tmp_path / "none") == "it wrote no log"


async def test_a_process_that_is_started_by_another_command_is_found_by_its_mark(
    folder: Path,
) -> None:
    # As nsenter does, whose numbers of processes are others.
    enter = ("env", "ENTERED=1")
    found = processes.spawn(folder, "in", SLEEP, "d", folder / "one.log", os.environ, enter)
    assert found is not None
    await until(lambda: bool(found.environ()))  # it may be in the middle of an exec
    assert found.environ()["ENTERED"] == "1"
    await processes.stop([found], signal.SIGKILL, 5)


async def test_a_component_below_another_one_is_a_component_of_its_own(folder: Path) -> None:
    mark = f"{processes.COMPONENT_MARK}=inner"
    outer = spawn(folder, "/bin/sh", "-c", f"env {mark} sleep 60 & wait", component="outer")
    await until(lambda: "inner" in processes.components(processes.find(folder)))
    found = processes.components(processes.find(folder))
    assert found["outer"].pid == outer.pid
    assert found["inner"].pid != outer.pid
    await processes.stop([one.process for one in found.values()], signal.SIGKILL, 5)


def test_a_process_whose_marks_cannot_be_read_for_a_moment_has_not_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the middle of an exec, where the kernel shows no environment."""
    find, looks = processes.find, iter([True, True])
    monkeypatch.setattr(
        processes, "find", lambda folder: [] if next(looks, False) else find(folder)
    )
    found = processes.spawn(
        tmp_path, "etcd", ["sleep", "60"], "d", tmp_path / "log", os.environ, enter=["env"]
    )
    assert found is not None
    found.kill()
    wait = 'pid=$("$@"); while grep -qs "^State:.[^Z]" /proc/$pid/status; do sleep 0.01; done'
    after_its_end = ["/bin/sh", "-c", wait, "sh"]
    ended = processes.spawn(
        tmp_path, "kwok", ["true"], "d", tmp_path / "log", os.environ, enter=after_its_end
    )
    assert ended is None


async def test_a_process_in_the_middle_of_an_exec_is_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = spawn(folder)
    real, looks = processes._environment, [b"", b"", b""]

    def environment(pid: int) -> bytes:
        return looks.pop() if pid == started.pid and looks else real(pid)

    monkeypatch.setattr(processes, "_environment", environment)
    assert [one.pid for one in processes.find(folder)] == [started.pid]
    await processes.stop([started], signal.SIGKILL, 5)
