"""What a worker of torchrun runs: an agent again and again, until it has ended by itself."""

import argparse
import ipaddress
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from alnair.elastic import torch
from alnair.elastic.child_names import child_names
from alnair.kube.objects.training_jobs import ElasticTorchJobWire, project_training_job
from kit import training_jobs as jobs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containers have /proc")


def container() -> jobs.Manifest:
    """The container of a worker."""
    job = project_training_job(msgspec.convert(jobs.torch("job", 1, 4), ElasticTorchJobWire))
    made = torch.workers(job, child_names(job), 2)["spec"]["template"]["spec"]["containers"][0]
    assert isinstance(made, dict)
    return made


class Worker:
    """A worker whose programs are stand-ins: each does what a line of shell says.

    Its Python is this one, and finds no PyTorch beside itself.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program("sleep", "exit 0")
        self.answers(False)

    def answers(self, there: bool, agent: str = "") -> None:
        """Whether the first worker answers those who ask, and what agents do in Python."""
        line = agent or f'exec "{sys.executable}" -S "$@"'
        asks = f'case "$2" in "import socket;"*) exit {int(not there)};; esac'
        self.program("python3", f"{asks}\n{line}")

    def program(self, name: str, does: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{does}\n")
        path.chmod(0o755)

    def start(self, index: int, address: str = "10.0.0.7") -> subprocess.Popen[str]:
        here = {"JOB_COMPLETION_INDEX": str(index), "ALNAIR_POD_IP": address}
        path = f"{self.folder}:{os.environ['PATH']}"
        return subprocess.Popen(
            container()["command"],
            env={"PATH": path, "FOLDER": str(self.folder), **here},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, index: int, address: str = "10.0.0.7") -> tuple[int, str]:
        with self.start(index, address) as process:
            said, errors = process.communicate(timeout=20)
        return process.returncode, said + errors


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    return Worker(tmp_path)


def test_only_the_first_worker_has_the_store(worker: Worker) -> None:
    worker.program("torchrun", 'echo "$@"')
    for index, is_host in ((0, 1), (3, 0)):
        code, said = worker.run(index)
        assert code == 0
        assert said.startswith(f"--rdzv-conf is_host={is_host},join_timeout=")
        assert " --nnodes=1:4 " in said
        assert said.endswith(" training python train.py --name two words\n")


def test_the_first_worker_has_the_address_that_comes_first(worker: Worker) -> None:
    # So it has rank 0, as torchrun gives ranks in the order of these texts.
    worker.program("torchrun", 'while [ "$1" != --local-addr ]; do shift; done; echo "$2"')
    of = {
        at: worker.run(*at)[1].strip() for at in ((0, "10.0.0.9"), (1, "10.0.0.10"), (2, "9.9.9.9"))
    }
    first, *others = of.values()
    assert first == "10.0.0.9"
    assert all(first < one for one in others)
    mapped = [ipaddress.IPv6Address(one).ipv4_mapped for one in others]
    assert mapped == [ipaddress.IPv4Address("10.0.0.10"), ipaddress.IPv4Address("9.9.9.9")]
    assert worker.run(1, "fd00::7")[1].strip() == "fd00::7"


def test_a_worker_begins_anew_while_the_first_one_is_away(worker: Worker) -> None:
    again = 'echo x >> "$FOLDER/starts"; [ "$(wc -l < "$FOLDER/starts")" = 3 ]'
    worker.program("torchrun", again)
    code, said = worker.run(1)
    assert code == 0
    assert said.count("the first worker is away") == 2


@pytest.mark.parametrize(("index", "answers"), [(0, False), (1, True)])
def test_a_training_that_fails_fails_its_pod(worker: Worker, index: int, answers: bool) -> None:
    worker.answers(answers)
    worker.program("torchrun", "exit 7")
    assert worker.run(index) == (7, "")


def test_who_loses_the_first_worker_begins_anew_though_the_next_one_is_there_already(
    worker: Worker,
) -> None:
    again = 'echo x >> "$FOLDER/starts"; [ "$(wc -l < "$FOLDER/starts")" = 2 ] || exit 75'
    worker.answers(True, again)
    code, said = worker.run(1)
    assert code == 0
    assert said.count("the first worker is away") == 1


def test_a_worker_that_leaves_lets_its_agent_end(worker: Worker) -> None:
    worker.program("torchrun", "trap 'echo ended; exit 9' TERM\necho runs\nwhile :; do :; done")
    with worker.start(1) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=20)
    assert said == "ended\n"
    assert process.returncode != 0


def test_a_worker_that_is_told_to_end_between_two_agents_begins_no_other(worker: Worker) -> None:
    worker.program("torchrun", 'echo x >> "$FOLDER/starts"; exit 1')
    worker.program("sleep", 'kill -TERM "$PPID"')
    code, said = worker.run(1)
    assert code == 143
    assert said.count("the first worker is away") == 1
    assert (worker.folder / "starts").read_text() == "x\n"


def test_a_worker_that_is_told_to_end_as_its_agent_begins_lets_it_end(worker: Worker) -> None:
    worker.answers(False, 'kill -TERM "$PPID"; while :; do :; done')
    code, _ = worker.run(1)
    assert code == 143


class Agent:
    """The agent in Python, with a stand-in for PyTorch that does as it is told.

    Args:
        folder: For it.
        does: What torchrun does there.
    """

    def __init__(self, folder: Path, does: str) -> None:
        api = folder / "torch" / "distributed" / "elastic" / "rendezvous" / "api.py"
        api.parent.mkdir(parents=True)
        api.write_text("class RendezvousConnectionError(Exception): pass\n")
        ends = api.parents[1] / "multiprocessing.py"
        ends.write_text("class SignalException(Exception): pass\n")
        run = folder / "torch" / "distributed" / "run.py"
        known = "from .elastic.rendezvous.api import *\nfrom .elastic.multiprocessing import *"
        run.write_text(f"import sys\n{known}\ndef main(): {does}\n")
        # What lies where the training begins is none of the agent's.
        self.here = folder / "here"
        self.here.mkdir()
        (self.here / "socket.py").write_text("raise SystemExit('a stranger')")
        self.folder = folder

    def start(self, first: int, port: int) -> subprocess.Popen[str]:
        text = container()["command"][2].split("-c '")[1].split("'")[0]
        return subprocess.Popen(
            [sys.executable, "-c", text, str(first), "127.0.0.1", str(port), "--nnodes=1:4"],
            cwd=self.here,
            env={"PYTHONPATH": str(self.folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def test_an_agent_begins_when_the_first_worker_listens(tmp_path: Path) -> None:
    agent = Agent(tmp_path, 'print(open("listens").read(), sys.argv)')
    with socket.socket() as store:
        store.bind(("127.0.0.1", 0))
        with agent.start(0, store.getsockname()[1]) as process:
            (agent.here / "listens").write_text("listens")
            store.listen()
            said, errors = process.communicate(timeout=20)
    assert (said, errors) == ("listens ['torchrun', '--nnodes=1:4']\n", "")


@pytest.mark.parametrize(
    ("does", "code"),
    [
        ("pass", 0),
        ("sys.exit(3)", 3),
        ("raise ValueError('of the training')", 1),
        ("raise RendezvousConnectionError('reset by peer')", 75),
        ("raise RuntimeError('wait timeout after 20000ms')", 75),
    ],
)
def test_an_agent_tells_the_loss_of_the_store_from_a_failure(
    tmp_path: Path, does: str, code: int
) -> None:
    with Agent(tmp_path, does).start(1, 0) as process:
        _, errors = process.communicate(timeout=20)
    assert process.returncode == code, errors
    assert ("the first worker is lost" in errors) is (code == 75)


def test_an_agent_that_is_told_to_end_adds_nothing_to_the_log(tmp_path: Path) -> None:
    with Agent(tmp_path, "raise SignalException('got signal: 15')").start(1, 0) as process:
        said, errors = process.communicate(timeout=20)
    assert (process.returncode, said, errors) == (1, "", "")


def test_torchrun_leaves_the_arguments_of_the_training_alone() -> None:
    # Its parser looks at all words for options that may be cut short, up to the first `--`.
    parser = argparse.ArgumentParser()
    for option in ("--nnodes", "--nproc-per-node", "--max-restarts", "--rdzv-backend"):
        parser.add_argument(option)
    for option in ("--rdzv-endpoint", "--rdzv-id"):
        parser.add_argument(option)
    parser.add_argument("--no-python", action="store_true")
    parser.add_argument("program")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    command = ["python", "train.py", "--n", "20", "--", "--rdzv", "x"]
    manifest = jobs.torch("job", 1, 4, pythonCommand=command)
    job = project_training_job(msgspec.convert(manifest, ElasticTorchJobWire))
    read = parser.parse_args(torch.arguments(job, child_names(job)))
    assert (read.nnodes, read.no_python, read.program) == ("1:4", True, "/bin/sh")
    assert read.rest[-len(command) :] == command


def guarded(*training: str, **counts: int) -> subprocess.CompletedProcess[str]:
    """What comes of a training's command, which an agent has the guard begin."""
    command = container()["command"]
    guard = command[command.index("training") - 1]
    agent = '"$@"; echo "ended with $?"'
    return subprocess.run(
        ["/bin/sh", "-c", agent, "agent", "/bin/sh", "-c", guard, "training", *training],
        env={"PATH": os.environ["PATH"], **{key: str(value) for key, value in counts.items()}},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("program", ["pyhton3", "/app/nowhere"])
def test_a_training_whose_program_is_not_there_is_not_begun_again(program: str) -> None:
    done = guarded(program, "train.py")
    assert done.stderr == f"the image has no program {program}: the training is not started\n"
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "")


@pytest.mark.parametrize(
    ("restarts", "lasted", "goes_on"), [(0, 1, True), (4, 1, True), (5, 99, False), (5, 101, True)]
)
def test_a_training_that_fails_at_once_is_given_up(
    restarts: int, lasted: int, goes_on: bool
) -> None:
    now = int(float(Path("/proc/uptime").read_text().split()[0]))
    counts = {"TORCHELASTIC_RESTART_COUNT": restarts, "ALNAIR_STARTED": now - lasted}
    done = guarded("echo", "trains", **counts)
    if goes_on:
        assert done.stdout == "trains\nended with 0\n"
    else:
        assert "it is not started again" in done.stderr
        assert (done.returncode, done.stdout) == (-signal.SIGTERM, "")
