"""`alnair agent` as a process: used by its commands, killed at any moment, started again."""

import json
import os
import random
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from alnair.cli import main
from alnair.node.vgpu.containers.journal import Journal
from alnair.node.vgpu.pages import abi
from native.server_kit import GPU, Group, claim, control_group, limits, slot

OK = int(abi.Reply.OK)
ALNAIR = [sys.executable, "-m", "alnair"]


@pytest.fixture
def group() -> Iterator[Group]:
    """A container's control group."""
    with control_group() as made:
        yield made


class Agent:
    """An agent that runs."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [*ALNAIR, "agent", "--folder", str(folder), "--metrics", "127.0.0.1:0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.ready = self.process.stdout.readline()
        assert self.ready.startswith("ready: "), self.ready
        self.url = self.ready.split()[-1]

    def end(self, *, kill: bool = False) -> int:
        """Stop it; return its exit code."""
        if kill:
            self.process.kill()
        else:
            self.process.terminate()
        code = self.process.wait(30)
        assert self.process.stdout
        self.process.stdout.close()
        return code


@contextmanager
def running(folder: Path, *options: str) -> Iterator[Agent]:
    """An agent until the end of the block."""
    agent = Agent(folder, *options)
    try:
        yield agent
    finally:
        if agent.process.returncode is None:
            agent.end()


def alnair(folder: Path, *words: str) -> Result:
    """A command of the agent, in this process: further starts of Python prove nothing more."""
    return CliRunner().invoke(main.build(["agent"]), ["agent", *words, "--folder", str(folder)])


def add(folder: Path, group: Group, name: str = "mine") -> None:
    """Prepare a container by hand."""
    slice_ = ["--gpu", GPU, "--memory", "1024", "--compute", "50"]
    done = alnair(folder, "container", "add", name, *slice_, "--cgroup", group.name)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.strip() == str(folder / "containers" / name)


def test_a_slice_is_added_changed_shown_and_removed_by_hand(tmp_path: Path, group: Group) -> None:
    with running(tmp_path) as agent:
        add(tmp_path, group)
        folder = tmp_path / "containers" / "mine"
        assert group.start(folder).ask(do="register")[0] == OK

        assert alnair(tmp_path, "container", "change", "mine", "--memory", "2048").exit_code == 0
        page = limits(folder)
        assert (page.device[0].memory_limit, page.device[0].compute_percent) == (2 << 30, 50)
        assert page.state == abi.State.REGISTERED

        shown = json.loads(alnair(tmp_path, "status", "--json").stdout)
        (one,) = shown["containers"]
        assert (one["state"], one["assignment"]["shares"][0]["memory_mib"]) == ("registered", 2048)
        assert "2048" in alnair(tmp_path, "container", "list").stdout

        text = urllib.request.urlopen(agent.url).read().decode()
        labels = rf'{{container="mine",gpu="{GPU}",[^}}]*}}'
        (limit,) = re.findall(rf"^alnair_vgpu_memory_limit_bytes{labels} (.*)$", text, re.MULTILINE)
        assert float(limit) == 2 << 30

        wrong = alnair(tmp_path, "container", "change", "yours", "--memory", "1")
        assert (wrong.exit_code, wrong.stderr) == (
            1,
            "error: there is no container yours: see 'alnair agent container list'\n",
        )

        assert alnair(tmp_path, "container", "remove", "mine").exit_code == 0
        assert not folder.exists()
        assert agent.end() == 0
    gone = alnair(tmp_path, "status")
    assert gone.exit_code == 1
    assert "no agent serves" in gone.stderr


def test_two_agents_do_not_share_a_folder(tmp_path: Path) -> None:
    with running(tmp_path):
        second = subprocess.run(
            [*ALNAIR, "agent", "--folder", str(tmp_path), "--metrics", "127.0.0.1:0"],
            capture_output=True,
            text=True,
            check=False,
        )
    assert second.returncode == 1
    assert "in use by another agent" in second.stderr


def test_a_killed_agent_takes_over_what_runs_and_frees_what_died_meanwhile(
    tmp_path: Path, group: Group
) -> None:
    folder = tmp_path / "containers" / "mine"
    with running(tmp_path) as agent:
        add(tmp_path, group)
        lives, dies = group.start(folder), group.start(folder)
        assert lives.ask(do="register")[0] == OK
        for index, tenant in enumerate((lives, dies)):
            pid, started = tenant.ask(do="pid")
            claim(folder, index, pid, started, held=64 << 20)
        before = limits(folder)
        agent.end(kill=True)
    dies.kill()
    with running(tmp_path):
        after = limits(folder)
        assert (after.state, after.generation) == (abi.State.REGISTERED, before.generation)
        assert bytes(after.device[0].uuid) == bytes(before.device[0].uuid)
        assert after.device[0].memory_limit == 1 << 30
        assert after.sequence % 2 == 0
        wait(lambda: slot(folder, 1).owner == 0)
        assert slot(folder, 0).device[0].held == 64 << 20
        (one,) = json.loads(alnair(tmp_path, "container", "list", "--json").stdout)
        assert (one["state"], one["processes"], one["held_bytes"]) == ("registered", 1, [64 << 20])
        # Who comes later finds the new socket under the old name.
        assert group.start(folder).ask(do="register")[0] == OK


def wait(true: Any, seconds: float = 20) -> None:
    began = time.perf_counter()
    while not true():
        assert time.perf_counter() - began < seconds
        time.sleep(0.02)


def test_a_damaged_journal_is_named_and_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "journal").write_bytes(b"alnair-vgpu-journal 1 00000000 2\n[]\n")
    done = subprocess.run(
        [*ALNAIR, "agent", "--folder", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "is damaged" in done.stderr
    assert (tmp_path / "journal").read_bytes().endswith(b"[]\n")


#: Calls of the system, by name and how many are let through, at which the server dies.
PHASES = [
    (name, at)
    for name, most in (("pwrite", 8), ("fsync", 3), ("ftruncate", 3), ("fchmod", 3), ("open", 5))
    for at in range(most)
]


@pytest.mark.parametrize("step", ["add", "change", "again", "remove"])
def test_a_server_that_dies_at_any_system_call_leaves_the_old_state_or_the_new(
    tmp_path: Path, group: Group, step: str
) -> None:
    phases = [f"{name}:{at}" for name, at in PHASES]
    done = subprocess.run(
        [sys.executable, str(KILLED), str(tmp_path), step, group.name, *phases],
        capture_output=True,
        text=True,
        check=True,
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(outcomes) == len(PHASES)
    first, less = {"a": [1024, 0]}, {"a": [512, 0]}
    expected = ({}, first) if step in {"add", "remove"} else (first, less)
    for phase, (has_died, shown) in zip(phases, outcomes, strict=True):
        assert shown in expected, phase
        folder = tmp_path / phase
        assert set(shown) == {entry.assignment.name for entry in Journal(folder).load()}, phase
        assert set(shown) == {each.name for each in (folder / "containers").glob("*")}, phase
        assert has_died or shown == expected[step != "remove"], phase
    assert sum(has_died for has_died, _ in outcomes) >= 3


KILLED = Path(__file__).parent / "clients" / "killed_server.py"


@pytest.mark.parametrize("seed", range(max(1, int(os.environ.get("ALNAIR_SOAK", "1")))))
def test_an_agent_that_is_killed_again_and_again_never_loses_a_container(
    tmp_path: Path, group: Group, seed: int
) -> None:
    folder = tmp_path / "containers" / "mine"
    chance = random.Random(seed)
    for turn in range(2):
        agent = Agent(tmp_path)
        if turn == 0:
            add(tmp_path, group)
            tenant = group.start(folder)
        tenant.start(do="register")
        time.sleep(chance.random() * 0.05)
        agent.end(kill=True)
        tenant.answer()
    with running(tmp_path):
        assert tenant.ask(do="register")[0] == OK
        assert limits(folder).generation == 1
