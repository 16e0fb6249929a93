"""Real processes, alone and beside one another."""

import sys
import time
from pathlib import Path

import pytest

from alnair.node.pairing import measuring
from alnair.node.pairing.measuring import Times, rates, rounds
from alnair.node.pairing.workload import Command, RunError
from alnair.profiler.pair_speeds import summarise

TICKS = "import time\nn = 0\nwhile True:\n n += 1; print('step', n); time.sleep(0.02)"
SHORT = Times(warm_up=0.2, measured=0.8, patience=20)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measures until enough steps are seen, also where this process stands still for seconds."""
    monkeypatch.setattr(measuring, "LONGER", 100)


def python(program: str, pattern: str | None = None) -> Command:
    return Command((sys.executable, "-c", program), pattern)


#: A step takes as many times 15 ms as there are programs of this kind: a GPU that takes turns. On a
#: busy machine a step ends late; the next one is due by when this one should have ended.
TURNS = """
import os, sys, time
from pathlib import Path
folder, done = Path({folder!r}), 0
(folder / str(os.getpid())).touch()
due = time.monotonic()
while True:
    here = [one for one in folder.iterdir() if os.path.exists("/proc/" + one.name)]
    due += 0.015 * {weight} * len(here)
    time.sleep(max(0.0, due - time.monotonic()))
    done += 1
    print("step", done)
"""


@pytest.mark.usefixtures("patient")
def test_two_that_take_turns_have_half_of_their_speed_each(tmp_path: Path) -> None:
    first, second = (python(TURNS.format(folder=str(tmp_path), weight=w)) for w in (1, 3))
    found = summarise(rounds(first, second, SHORT, 3, lambda _: None))
    assert found.first.speed == pytest.approx(0.5, abs=0.1)
    assert found.second.speed == pytest.approx(0.5, abs=0.1)
    assert found.first.alone > 2 * found.second.alone


@pytest.mark.usefixtures("patient")
def test_the_order_alternates() -> None:
    quick = Times(warm_up=0, measured=0.3, patience=20)
    said: list[str] = []
    rounds(python(TICKS), python(TICKS), quick, 2, said.append)
    assert said == [
        "round 1 of 2: alone",
        "round 1 of 2: together",
        "round 2 of 2: together",
        "round 2 of 2: alone",
    ]


@pytest.mark.usefixtures("patient")
def test_steps_are_counted_by_a_pattern() -> None:
    (rate,) = rates((python(TICKS, "^step"),), SHORT)
    # 50 at most; what is read first may be a step later than it was printed.
    assert 5 < rate < 55


@pytest.mark.parametrize(
    ("command", "patience", "said"),
    [
        (Command(("/no/such/program",)), 20, "does not start: No such file"),
        (python("print('bye'); raise SystemExit(3)"), 20, "exit code 3.*\n*bye"),
        (python("import time; time.sleep(60)"), 0.5, "no step in 0.5 s: say with --pattern"),
        (python("import time; print('step 1', flush=True); time.sleep(60)"), 20, "0 times in"),
    ],
)
def test_what_cannot_be_measured_is_said_with_what_to_do(
    command: Command, patience: float, said: str
) -> None:
    with pytest.raises(RunError, match=said):
        rates((command,), Times(warm_up=0, measured=0.3, patience=patience))


@pytest.mark.usefixtures("patient")
def test_workers_of_a_workload_end_with_it(tmp_path: Path) -> None:
    launcher = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))
n = 0
while True:
    n += 1
    print("step", n)
    time.sleep(0.01)
"""
    rates((python(launcher),), Times(warm_up=0, measured=0.3, patience=20))
    child = int((tmp_path / "pid").read_text())
    # It was killed, and ends as soon as it has its turn.
    deadline = time.monotonic() + 20
    while (state := state_of(child)) not in "ZX":
        assert time.monotonic() < deadline, state
        time.sleep(0.01)


def state_of(pid: int) -> str:
    """As the kernel calls it; X if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"
