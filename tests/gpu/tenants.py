"""Containers with limits on the machine that is tested: an identity each, registered or prepared.

As root, with control groups, they are containers of a real vGPU server (`alnair agent`): a process
group is one by its control group. Elsewhere their folders are laid out as the server would, and a
process belongs to one because its environment says so.
"""

import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from gpu.groups import Group, NoControlGroupsError, control_group
from gpu.machine import MIB, Machine
from native import build
from native.container import SOFT, Container, Counters, Slot

_numbers = itertools.count(1)


class Home(NamedTuple):
    """Where a process runs: its environment, and the file that takes it into a control group."""

    environment: dict[str, str]
    procs: str = ""


class Tenant:
    """One container: a home for its processes, its limits and its ledger."""

    def __init__(self, tag: str, home: Home) -> None:
        self.tag = tag
        self.home = home

    def change(self, *, memory: int | None = None, percent: int | None = None) -> None:
        """Changes its limits while it runs."""
        raise NotImplementedError

    def total(self, field: str) -> int:
        """A field of its processes' slots, summed: "held", "contexts", "refused"..."""
        raise NotImplementedError

    def starts(self) -> list[int]:
        """Nanoseconds in which our library let each of its processes in, of those that run."""
        raise NotImplementedError

    def held(self) -> int:
        """Bytes in its ledger."""
        return self.total("held")


class _Prepared(Tenant):
    """A container without a server."""

    def __init__(self, tag: str, machine: Machine, made: Container) -> None:
        super().__init__(tag, Home({**machine.environment(tag), **made.environment()}))
        self._made = made

    def change(self, *, memory: int | None = None, percent: int | None = None) -> None:
        limits = {"memory_limit": memory, "compute_percent": percent}
        self._made.change(**{name: value for name, value in limits.items() if value is not None})

    def total(self, field: str) -> int:
        return self._made.total(field)

    def starts(self) -> list[int]:
        return [int(slot.start_ns) for slot in self._made.slots() if slot.start_ns]


class _Served(Tenant):
    """A container of the agent."""

    def __init__(self, tag: str, machine: Machine, group: Group, agent: "Agent") -> None:
        self._folder = agent.folder / "containers" / tag
        environment = {
            **machine.environment(tag),
            "ALNAIR_VGPU_DIR": str(self._folder),
            "LD_PRELOAD": str(build.INTERPOSER),
        }
        super().__init__(tag, Home(environment, str(group.folder / "cgroup.procs")))
        self._agent = agent

    def change(self, *, memory: int | None = None, percent: int | None = None) -> None:
        words = [] if memory is None else ["--memory", str(memory // MIB)]
        words += [] if percent is None else ["--compute", str(percent)]
        self._agent.say("container", "change", self.tag, *words)

    def total(self, field: str) -> int:
        return sum(int(getattr(slot.device[0], field)) for slot in self._slots())

    def starts(self) -> list[int]:
        return [int(slot.start_ns) for slot in self._slots() if slot.start_ns]

    def _slots(self) -> list[Slot]:
        content = Counters.from_buffer_copy((self._folder / "counters").read_bytes())
        return [slot for slot in content.slot if slot.owner]


class Agent:
    """A running `alnair agent` with a folder of its own."""

    #: Seconds until it answers: its modules are compiled at its first start.
    PATIENCE = 60

    def __init__(self, machine: Machine) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="alnair-agent-", dir="/dev/shm")
        self.folder = Path(self._folder.name)
        self._environment = {**os.environ, **machine.environment("agent")}
        self._log = (self.folder / "log").open("w+")
        self._process = subprocess.Popen(
            [*self._command, "--folder", str(self.folder), "--metrics", "127.0.0.1:0", "--suspend"],
            env=self._environment,
            stdout=self._log,
            stderr=self._log,
        )
        end = time.monotonic() + self.PATIENCE
        while self._status().returncode:
            late = time.monotonic() > end
            if self._process.poll() is not None or late:
                self.close()
                how = f"did not answer in {self.PATIENCE} s" if late else "ended"
                raise RuntimeError(f"the agent {how}: {self._said}")
            time.sleep(0.1)

    _command = (sys.executable, "-c", "from alnair.cli.main import main; main()", "agent")

    def _status(self) -> "subprocess.CompletedProcess[str]":
        return self._run("status")

    def _run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*self._command, *words, "--folder", str(self.folder)],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def say(self, *words: str) -> str:
        """Runs one of its commands.

        Raises:
            RuntimeError: it refused; with what it said.
        """
        done = self._run(*words)
        if done.returncode:
            raise RuntimeError(f"alnair agent {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def log(self) -> str:
        """All that it logged so far."""
        self._log.flush()
        return (self.folder / "log").read_text()

    def close(self) -> None:
        """Ends it."""
        self._process.terminate()
        self._process.wait()
        self._said = self.log()[-500:]
        self._log.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Tenants:
    """Makes containers on a machine, by the agent where there can be one.

    Attributes:
        problem: Why an agent that could run does not, or "".
    """

    def __init__(
        self, machine: Machine, context: int, agent: Agent | None, problem: str = ""
    ) -> None:
        self.machine = machine
        self.problem = problem
        self.agent = agent
        self._context = context

    def free(self) -> Home:
        """A home without interposer."""
        return Home(self.machine.environment("free"))

    @contextmanager
    def one(
        self, *, memory: int = 0, percent: int = 0, soft: bool = False, borrows: bool = False
    ) -> Iterator[Tenant]:
        """A container with these limits; 0: none.

        Args:
            memory: bytes.
            percent: of GPU time.
            soft: it may use what others leave.
            borrows: it may have memory that nobody was granted, by an agent's leave.
        """
        tag = f"t{next(_numbers)}"
        with ExitStack() as stack:
            if self.agent is None:
                made = stack.enter_context(
                    Container(
                        self.machine.uuid(),
                        memory_limit=memory,
                        compute_percent=percent,
                        context_bytes=self._context,
                        flags=SOFT if soft else 0,
                    )
                )
                yield _Prepared(tag, self.machine, made)
                return
            group = stack.enter_context(control_group())
            words = ["--gpu", f"GPU-{self.machine.uuid()}", "--cgroup", group.name]
            words += ["--memory", str(memory // MIB), "--compute", str(percent)]
            words += ["--soft"] * soft + ["--borrow"] * borrows
            self.agent.say("container", "add", tag, *words)
            stack.callback(self.agent.say, "container", "remove", tag)
            yield _Served(tag, self.machine, group, self.agent)


@contextmanager
def tenants(machine: Machine, context: int, *, served: bool = True) -> Iterator[Tenants]:
    """Tenants of an agent where it can run (root, control groups), prepared ones elsewhere."""
    with ExitStack() as stack:
        agent, problem = None, ""
        if served and os.geteuid() == 0:
            try:
                with control_group():
                    agent = stack.enter_context(Agent(machine))
            except NoControlGroupsError as why:
                print(f"no vGPU server: {why}", file=sys.stderr)
            except RuntimeError as why:
                problem = str(why)
        yield Tenants(machine, context, agent, problem)


def rounded(size: int) -> int:
    """Bytes in blocks of 2 MiB, as the driver takes them from the GPU."""
    return -(-size // (2 * MIB)) * 2 * MIB
