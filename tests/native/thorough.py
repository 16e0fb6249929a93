"""`make test-native` and `make coverage-native`: what is too slow for every run of the tests.

The native tests again, built with each sanitizer and under valgrind; fuzzers of what reads bytes
that others wrote; and which lines of the C library the tests reach. Each stage prints one line,
and the end of its output where it failed.
"""

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SANITIZERS = ("address", "undefined", "thread")
#: Tests of accuracy and speed mean nothing in a program that a sanitizer slows down tenfold.
NOT_TIMING = "not timing"
#: Under valgrind a test takes fifty times as long: these go through every module of the library.
VALGRIND = "valgrind"
LEAST_COVERED = 90.0


class Stages:
    """Runs commands, prints a line for each, and remembers whether one failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def run(self, name: str, command: list[str], **environment: str) -> None:
        """One stage: its command's last line where it succeeds, its last lines where it fails."""
        began = time.monotonic()
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        lines = done.stdout.strip().splitlines() or [""]
        self.say(name, f"{lines[-1]} ({time.monotonic() - began:.0f} s)")
        if done.returncode:
            self.failed.append(name)
            print("\n".join(f"    {line}" for line in lines[-40:]), flush=True)

    def say(self, name: str, text: str) -> None:
        """A line of the table."""
        print(f"{name:<20} {text}", flush=True)


def pytest(*more: str) -> list[str]:
    """The command of the native tests."""
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/native", *more]


def tests(stages: Stages, given: list[str]) -> None:
    """The native tests with each sanitizer, then the chosen ones under valgrind."""
    for sanitizer in SANITIZERS:
        stages.run(sanitizer, pytest("-m", NOT_TIMING, *given), ALNAIR_SANITIZE=sanitizer)
    if shutil.which("valgrind"):
        stages.run("valgrind", pytest("-m", VALGRIND, *given), ALNAIR_VALGRIND="1")
    else:
        stages.say("valgrind", "skipped: it is not here (Debian: apt-get install valgrind)")


def fuzzers(stages: Stages, seconds: float) -> None:
    """Every fuzzer of native/fuzz, for so long each."""
    make = ["make", "-s", "-C", "native", "fuzz", f"PYTHON={sys.executable}"]
    stages.run("fuzz: build", make)
    folder = ROOT / "build" / "native-fuzz"
    for program in sorted(folder.glob("fuzz_*")):
        if os.access(program, os.X_OK) and program.is_file():
            # By this path and not by the program's own: the sanitizer makes its calls of dlopen.
            libraries = str(ROOT / "build" / "native")
            stages.run(program.name, [str(program), str(seconds)], LD_LIBRARY_PATH=libraries)


def coverage(stages: Stages, given: list[str]) -> None:
    """Lines of native/vgpu that the native tests reach, per file; fails below LEAST_COVERED."""
    folder = ROOT / "build" / "native-coverage"
    for old in folder.rglob("*.gcda"):
        old.unlink()
    stages.run("tests", pytest("-m", NOT_TIMING, *given), ALNAIR_COVERAGE="1")
    lines: dict[str, dict[int, int]] = {}
    for name, number, count in reached(folder):
        of = lines.setdefault(name, {})
        of[number] = max(of.get(number, 0), count)
    total = hit = 0
    for name, of in sorted(lines.items()):
        covered = sum(count > 0 for count in of.values())
        total, hit = total + len(of), hit + covered
        missing = ranges(sorted(number for number, count in of.items() if not count))
        print(
            f"{name:<36} {covered:>5} of {len(of):>5}  {100 * covered / len(of):5.1f} %  {missing}"
        )
    share = 100 * hit / max(total, 1)
    print(f"{'native/vgpu':<36} {hit:>5} of {total:>5}  {share:5.1f} % of lines")
    if share < LEAST_COVERED:
        stages.failed.append(f"coverage below {LEAST_COVERED:g} %")


def reached(folder: Path) -> Iterator[tuple[str, int, int]]:
    """(file, line, how often) of the library's sources, from gcov's data."""
    for data in folder.rglob("*.gcda"):
        done = subprocess.run(
            ["gcov", "--json-format", "--stdout", str(data)],
            cwd=data.parent,
            capture_output=True,
            check=True,
        )
        text = done.stdout
        document = json.loads(gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text)
        for file in document["files"]:
            path = Path(document["current_working_directory"], file["file"]).resolve()
            if path.is_relative_to(library := ROOT / "native" / "vgpu"):
                for line in file["lines"]:
                    yield str(path.relative_to(library)), line["line_number"], line["count"]


def ranges(numbers: list[int]) -> str:
    """Line numbers as "3-5 9"."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number <= found[-1][1] + 2:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def main() -> int:
    """Runs what the command line asks for; 1 where a stage failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--coverage", action="store_true", help="only the coverage of the C library"
    )
    parser.add_argument("--fuzz", action="store_true", help="only the fuzzers")
    parser.add_argument("--seconds", type=float, default=60, help="for each fuzzer")
    parser.add_argument("tests", nargs="*", help="further arguments of pytest")
    given = parser.parse_args()
    stages = Stages()
    if given.coverage:
        coverage(stages, given.tests)
    else:
        if not given.fuzz:
            tests(stages, given.tests)
        fuzzers(stages, given.seconds)
    if stages.failed:
        print(f"failed: {', '.join(stages.failed)}")
    return int(bool(stages.failed))


if __name__ == "__main__":
    sys.exit(main())
