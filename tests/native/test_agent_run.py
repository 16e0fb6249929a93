"""The whole way on the fake GPU: agent, library and any program, by `alnair agent run`."""

import json
import os
import platform
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from native import build
from native.fake import Fake
from native.server_kit import Group
from native.test_server_restart import Agent, alnair, running, wait

OUT_OF_MEMORY = "2"

#: The agent and `alnair agent run` are Python, and hand the program an environment of theirs: the
#: sanitizer's runtime, which must come before our library, would have to be in each of the two.
NOT_SANITIZED = pytest.mark.skipif(
    bool(build.SANITIZE), reason="programs that an agent starts have no sanitizer's runtime first"
)
pytestmark = NOT_SANITIZED


@pytest.fixture
def agent(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    """An agent on a machine with a fake GPU, where groups can be made."""
    Group().close()
    for name, value in fake.environment("a").items():
        monkeypatch.setenv(name, value)
    started = Agent(tmp_path)
    yield started
    if started.process.returncode is None:
        started.end()


def run(folder: Path, *words: object, program: str = "") -> subprocess.Popen[str]:
    """Start `alnair agent run` with a slice of the first GPU."""
    program = program or str(build.client("hold", "-l:libcuda.so.1"))
    slices = ["--gpu", "0", "--library", str(build.INTERPOSER), "--folder", str(folder)]
    at = words.index("--")
    options, rest = [str(w) for w in words[:at]], [str(w) for w in words[at + 1 :]]
    command = [*slices, *options, "--", program, *rest]
    return subprocess.Popen(
        [sys.executable, "-m", "alnair", "agent", "run", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_program_gets_its_slice_and_no_more(fake: Fake, agent: Agent, tmp_path: Path) -> None:
    over = run(tmp_path, "--memory", 2048, "--", 4096)
    assert over.communicate()[0].strip() == OUT_OF_MEMORY
    beyond = run(tmp_path, "--memory", 2048, "--swap", 4096, "--", 4096)
    assert beyond.stdout
    assert beyond.stdout.readline() == "held\n"
    wait(lambda: containers(tmp_path)[0].get("swapped_bytes") == [4096 << 20])
    assert fake.managed_host() == 4096 << 20
    assert containers(tmp_path)[0]["held_bytes"][0] <= 1024 << 20
    beyond.communicate()
    within = run(tmp_path, "--memory", 2048, "--compute", 50, "--", 1024, "ns_1000000")
    assert within.stdout
    assert within.stdout.readline() == "held\n"
    wait(lambda: containers(tmp_path)[0]["processes"] == 1)
    (one,) = containers(tmp_path)
    assert one["state"] == "registered"
    name = one["assignment"]["name"]
    rest = f'namespace="",node="{platform.node()}",owner_kind="",owner_name="",pod=""'
    of = f'{{container="{name}",gpu="GPU-{fake.uuid()}",{rest}'
    of_gpu = f'{{gpu="GPU-{fake.uuid()}"}}'
    figures: dict[str, str] = {}

    def is_measured() -> bool:
        text = urllib.request.urlopen(agent.url).read().decode()
        figures.update(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
        return (
            float(figures.get(f"alnair_vgpu_compute_charged_seconds_total{of}}}", 0)) > 0.5
            and float(figures.get(f"alnair_vgpu_compute_throttled_seconds_total{of}}}", 0)) > 0.1
            and 0 < float(figures.get(f"alnair_gpu_utilization_ratio{of_gpu}", 0)) < 1
            and float(figures.get(f"alnair_vgpu_memory_driver_bytes{of}}}", 0)) > 0
        )

    wait(is_measured, 60)
    (one,) = containers(tmp_path)
    assert 1024 << 20 <= one["held_bytes"][0] <= 2048 << 20
    driver = float(figures[f"alnair_vgpu_memory_driver_bytes{of}}}"])
    used = float(figures[f"alnair_vgpu_memory_used_bytes{of}}}"])
    overhead = float(figures[f"alnair_vgpu_memory_overhead_bytes{of}}}"])
    assert driver <= used + overhead
    of_kind = of.replace(",namespace", ',kind="unregistered",namespace')
    assert float(figures[f"alnair_vgpu_violation{of_kind}}}"]) == 0
    assert float(figures[f"alnair_gpu_healthy{of_gpu}"]) == 1
    assert float(figures[f"alnair_gpu_memory_used_bytes{of_gpu}"]) >= driver
    within.communicate()
    assert within.returncode == 0
    assert containers(tmp_path) == []


@pytest.mark.usefixtures("agent")
def test_a_program_sees_no_gpu_that_it_was_not_given(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    said = run(tmp_path, "--", program="/usr/bin/env").communicate()[0]
    assert f"CUDA_VISIBLE_DEVICES=GPU-{fake.uuid()}\n" in said


def test_how_a_program_ended_is_told_although_the_agent_is_gone(
    agent: Agent, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = run(
        tmp_path, "--memory", 2048, "--", "-c", "echo began; read x; exit 7", program="/bin/sh"
    )
    assert program.stdout
    assert program.stdout.readline() == "began\n"
    agent.end(kill=True)
    program.communicate("\n")
    assert program.returncode == 7
    said = capfd.readouterr().err
    assert "Traceback" not in said
    assert "alnair agent container remove run-" in said


def groups(of: subprocess.Popen[str]) -> set[Path]:
    """The control groups of a program that was run, and of no other test's."""
    # Groups of others come and go meanwhile, which Path.glob takes for an error.
    return {
        Path(inside, name)
        for inside, below, _ in os.walk("/sys/fs/cgroup")
        for name in below
        if name.startswith(f"alnair-run-{of.pid}-")
    }


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_what_ends_it_ends_its_program_and_leaves_no_group(
    agent: Agent, tmp_path: Path, how: signal.Signals
) -> None:
    # The program has a word in it: it is asked to end, and not killed. It has no children, which
    # might outlive it for longer than its group is waited for.
    script = (
        f"import signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [{how:d}]);"
        f" print('began', flush=True); signal.sigwait([{how:d}]); sys.exit(5)"
    )
    ours = signal.signal(how, signal.SIG_DFL)  # under nohup, all that we start ignores SIGHUP
    program = run(tmp_path, "--memory", 64, "--", "-c", script, program=sys.executable)
    signal.signal(how, ours)
    assert program.stdout
    assert program.stdout.readline() == "began\n"
    assert groups(program)
    program.send_signal(how)
    program.communicate()
    assert program.returncode == 5
    assert not groups(program)
    assert containers(tmp_path) == []


def test_what_a_killed_run_left_goes_with_the_next_one(agent: Agent, tmp_path: Path) -> None:
    killed = run(tmp_path, "--memory", 64, "--", "-c", "echo began; read x", program="/bin/sh")
    assert killed.stdout
    assert killed.stdout.readline() == "began\n"
    killed.kill()
    killed.communicate()  # its input ends, and so does the program
    (left,) = groups(killed)
    wait(lambda: not (left / "cgroup.procs").read_text())
    run(tmp_path, "--memory", 64, "--", "-c", "", program="/bin/sh").communicate()
    assert left.exists(), "it is young: its maker may be in another pid namespace"
    os.utime(left, (0, 0))
    last = run(tmp_path, "--memory", 64, "--", "-c", "", program="/bin/sh")
    last.communicate()
    assert not groups(killed)
    assert not groups(last)
    assert containers(tmp_path) == []


def test_a_program_that_is_not_there_ends_as_in_a_shell(agent: Agent, tmp_path: Path) -> None:
    words = ["run", "--gpu", "0", "--library", str(build.INTERPOSER)]
    assert alnair(tmp_path, *words, "--memory", "64").exit_code == 2  # what to run?
    command = [sys.executable, "-m", "alnair", "agent", *words, "--folder", str(tmp_path)]
    missing = subprocess.run(
        [*command, "--", "/nowhere/program"], capture_output=True, text=True, check=False
    )
    assert (missing.returncode, missing.stderr) == (
        127,
        "error: /nowhere/program: No such file or directory\n",
    )


NOWHERE = "GPU-00000000-0000-0000-0000-000000000001"
#: Commands about containers, their exit codes, and what they say.
REFUSED = [
    ("add a --gpu 7 --cgroup /a", 1, "there is no GPU 7: this node has 0 (GPU-"),
    (f"add a --gpu {NOWHERE} --cgroup /a", 1, f"there is no GPU {NOWHERE}: this node has 0"),
    ("add a --gpu 0 --memory 999999 --cgroup /a", 1, "999999 MiB of GPU 0, which has 143771"),
    ("add a --gpu 0", 1, "nothing tells the container's processes"),
    ("add a --gpu 0 --compute 101 --cgroup /a", 2, "101 is out of range: write a whole"),
    ("change mine --memory 999999", 1, "give less, or 0 for no limit"),
    ("change mine", 2, "nothing is to change: give --memory"),
    ("change yours --memory 1", 1, "there is no container yours: see"),
    ("change mine --gpu 3 --memory 1", 1, "container mine has no slice of 3"),
    ("remove yours", 1, "there is no container yours: see"),
    ("add a --gpu 0 --compute 40 --cgroup /a", 0, ""),
    ("change a --compute 60", 0, "warning: all containers together may use 120 % of GPU 0"),
]


def test_what_cannot_be_given_is_refused_with_what_can(agent: Agent, tmp_path: Path) -> None:
    mine = "container add mine --gpu 0 --memory 1024 --compute 60 --cgroup /mine"
    assert alnair(tmp_path, *mine.split()).exit_code == 0
    for words, code, said in REFUSED:
        done = alnair(tmp_path, "container", *words.split())
        text = " ".join(done.stderr.split())
        assert (done.exit_code, said in text, bool(text)) == (code, True, bool(said)), text


def test_an_agent_that_cannot_serve_says_why(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    port = agent.url.split(":")[2].split("/")[0]
    for folder, address, why in [
        ("file", "127.0.0.1:0", "file cannot be used: File exists; run the agent as root"),
        ("other", f"127.0.0.1:{port}", f"on 127.0.0.1:{port}: Address already in use; choose"),
        ("long" * 30, "127.0.0.1:0", "AF_UNIX path too long; give a shorter --folder"),
    ]:
        command = ["agent", "--folder", str(tmp_path / folder), "--metrics", address]
        done = subprocess.run(
            [sys.executable, "-m", "alnair", *command], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert why in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr


def test_a_program_goes_on_while_the_agent_dies_and_comes_back(
    fake: Fake, agent: Agent, tmp_path: Path
) -> None:
    program = run(tmp_path, "--memory", 2048, "--compute", 50, "--", 64, "ns_1000000")
    assert program.stdout
    assert program.stdout.readline() == "held\n"
    agent.end(kill=True)
    before = fake.kernels("a")
    wait(lambda: fake.kernels("a") > before + 100, 20)
    with running(tmp_path):
        wait(lambda: containers(tmp_path)[0]["processes"] == 1)
        assert containers(tmp_path)[0]["state"] == "registered"
        before, began = fake.kernels("a"), time.perf_counter()
        time.sleep(1)
        wait(lambda: fake.kernels("a") > before + 100, 20)
        rate = (fake.kernels("a") - before) / (time.perf_counter() - began)
        assert rate < 700  # half of a thousand, less where the machine is busy
        program.communicate()
        assert program.returncode == 0


def test_sixty_four_programs_of_a_container_start_at_once_and_leave_nothing(
    fake: Fake, agent: Agent, tmp_path: Path
) -> None:
    hold = build.client("hold", "-l:libcuda.so.1")
    # In the background of a shell, the programs' input is empty: they end once they hold.
    script = f"for i in $(seq 64); do {hold} 8 & done; wait; sleep 1"
    done = run(tmp_path, "--memory", 60_000, "--", "-c", script, program="/bin/sh")
    text, _ = done.communicate()
    assert text.split() == ["held"] * 64
    assert fake.used("a") == 0
    assert containers(tmp_path) == []


def containers(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(alnair(folder, "container", "list", "--json").stdout)
    return found
