"""Parts of `make test-native`: each a command with a log, progress while it runs, and a row."""

import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from native import build

#: Of each part what it said, and what pytest counted.
LOGS = build.ROOT / "build" / "test-native"
#: Seconds between two lines of progress where there is no terminal.
QUIET = 60.0
_PERCENT = re.compile(r"\[ *(\d+)%\]")


class Counts(NamedTuple):
    """What a part came to."""

    tests: int
    failed: int
    skipped: int = 0
    told: str = ""


class Row(NamedTuple):
    """A part that has ended; seconds by the clock, and of processors."""

    name: str
    counts: Counts
    seconds: float
    cpu: float


Count = Callable[[Path, int], Counts]


class Part(NamedTuple):
    """What is run, and how it is counted: by the log, and the exit status."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    count: Count


def by_pytest(name: str, *words: str, **environment: str) -> Part:
    """A part that is tests; each test is one."""
    report = LOGS / f"{name}.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [f"--junitxml={report}", "--tb=short", *words]

    def count(_: Path, status: int) -> Counts:
        if not report.exists():  # it ended before it could tell
            return Counts(0, 1)
        suites = list(ET.parse(report).getroot().iter("testsuite"))

        def total(field: str) -> int:
            return sum(int(suite.get(field, "0")) for suite in suites)

        failed = total("failures") + total("errors")
        # An error of a fixture at a test's end is one beside the test.
        return Counts(total("tests"), failed or int(status not in (0, 5)), total("skipped"))

    return Part(name, command, environment, count)


def by_inputs(name: str, *command: str, **environment: str) -> Part:
    """A part that is one of our fuzzers; each input is a test."""

    def count(log: Path, status: int) -> Counts:
        said = (log.read_text(errors="replace").splitlines() or [""])[-1]
        inputs = re.search(r"(\d+) inputs", said)
        return Counts(int(inputs[1]) if inputs else 0, int(status != 0), told=said)

    return Part(name, command, environment, count)


def by_status(name: str, *command: str) -> Part:
    """A part that is one test; it tells something in its last line."""

    def count(log: Path, status: int) -> Counts:
        said = (log.read_text(errors="replace").splitlines() or [""])[-1]
        return Counts(1, int(status != 0), told=said)

    return Part(name, command, {}, count)


def run(part: Part) -> Row:
    """Runs one part; shows how far it is, how it ended, and the end of its log where it failed."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{part.name}.log"
    (LOGS / f"{part.name}.xml").unlink(missing_ok=True)
    began, used = time.monotonic(), _used()
    with log.open("w") as out:
        process = subprocess.Popen(
            part.command,
            cwd=build.ROOT,
            env={**os.environ, **part.environment},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait(part.name, process, log)
    except BaseException:
        process.kill()
        process.wait()
        raise
    row = Row(
        part.name,
        part.count(log, process.returncode),
        time.monotonic() - began,
        _used() - used,
    )
    print(_ended(row, log), flush=True)
    return row


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _wait(name: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    is_terminal = sys.stdout.isatty()
    began = said = time.monotonic()
    if not is_terminal:
        print(f"{name}: begins", flush=True)
    while True:
        try:
            process.wait(timeout=0.5)
            break
        except subprocess.TimeoutExpired:
            pass
        now = time.monotonic()
        line = f"{name}: {_far(log.read_text(errors='replace'))} ({now - began:.0f} s)"
        if is_terminal:
            print(f"\r\x1b[K{line}", end="", flush=True)
        elif now - said >= QUIET:
            said = now
            print(line, flush=True)
    if is_terminal:
        print("\r\x1b[K", end="")


def _far(text: str) -> str:
    """How far pytest says it is, and what failed so far."""
    rows = [line for line in text.splitlines() if re.fullmatch(r"[.sxXFE]+( *\[ *\d+%\])?", line)]
    found = _PERCENT.findall(text)
    bad = sum(row.count("F") + row.count("E") for row in rows)
    far = f"{found[-1]} %" if found else "running"
    return f"{far}, {bad} failed so far" if bad else far


def _ended(row: Row, log: Path) -> str:
    counts = row.counts
    if not counts.failed:
        return f"{row.name}: passed ({row.seconds:.0f} s)"
    lines = log.read_text(errors="replace").splitlines()[-40:]
    end = "\n".join(f"    {line}" for line in lines)
    return f"{row.name}: {counts.failed} failed ({row.seconds:.0f} s); all of it: {log}\n{end}"


def table(rows: Sequence[Row]) -> str:
    """One line per part, and their sums."""
    every = Counts(
        sum(row.counts.tests for row in rows),
        sum(row.counts.failed for row in rows),
        sum(row.counts.skipped for row in rows),
    )
    total = Row("in all", every, sum(row.seconds for row in rows), sum(row.cpu for row in rows))
    head = f"{'part':<20} {'tests':>9} {'passed':>9} {'failed':>6} {'skipped':>7}"
    head += f" {'time':>7} {'CPU':>7}"
    return "\n".join([head, *map(_line, rows), _line(total)])


def _line(row: Row) -> str:
    counts = row.counts
    passed = max(0, counts.tests - counts.failed - counts.skipped)
    return (
        f"{row.name:<20} {counts.tests:>9,} {passed:>9,} {counts.failed:>6} {counts.skipped:>7}"
        f" {row.seconds:>5.0f} s {row.cpu:>5.0f} s  {counts.told}"
    ).rstrip()
