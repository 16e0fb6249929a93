"""The C code under sanitizers and fuzzers, in short: once for each change of it.

`make test-native` does it at length, and always.
"""

import datetime as dt
import os
import subprocess
from pathlib import Path

import pytest

from native import build, parts, thorough
from native.unchanged import Passes

HERE = Path(__file__).parent
#: Tests that go through the library in seconds, by sanitizer.
SHORT = {
    "address+undefined": (
        "test_every_hook.py",
        "test_workers.py",
        "test_memory_tenant.py",
        "test_memory_paths.py",
        "test_compute_counts.py",
        "test_interleavings.py",
    ),
    "thread": (
        "test_interleavings.py",
        "test_memory_races.py::test_eight_threads_of_one_process_stay_within_the_limit",
    ),
}
OURS = {"ALNAIR_SANITIZE_OURS": "1"}
#: Seconds for each fuzzer.
SECONDS = 2.0

OTHER_BUILDS = ("ALNAIR_SANITIZE", "ALNAIR_COVERAGE", "ALNAIR_VALGRIND")

pytestmark = [
    pytest.mark.skipif(any(map(os.environ.get, OTHER_BUILDS)), reason="it is for the plain build"),
    pytest.mark.timeout(900),  # it compiles the library, which is done at other times by nobody
]


def once(passes: Passes, *tried: parts.Part) -> None:
    """Runs parts, unless they passed with what is here."""
    if date := passes.when():
        pytest.skip(f"unchanged since a run that passed on {date}")
    for part in tried:
        done = subprocess.run(
            part.command,
            cwd=build.ROOT,
            env={**os.environ, **part.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:]
    passes.note()


@pytest.mark.parametrize("sanitizer", SHORT)
def test_nothing_is_found_by(sanitizer: str) -> None:
    files = {HERE / name.partition("::")[0] for name in SHORT[sanitizer]}
    words = [f"tests/native/{name}" for name in SHORT[sanitizer]]
    words += ["-m", thorough.NOT_TIMING, "-p", "no:xdist", "--maxfail=5"]
    part = parts.by_pytest(f"short-{sanitizer}", *words, ALNAIR_SANITIZE=sanitizer, **OURS)
    once(Passes(part.name, files), part)


def test_fuzzers_end_nothing() -> None:
    once(Passes("short-fuzz"), *thorough.fuzzers(SECONDS))


def test_what_passed_is_known_until_a_file_of_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALNAIR_CACHE", str(tmp_path))
    mine, other = Path(__file__), HERE / "test_abi.py"
    assert not Passes("a", [mine]).when()
    days = [today()]
    Passes("a", [mine]).note()
    days.append(today())  # at midnight it is another one
    assert Passes("a", [mine]).when() in days
    assert not Passes("a", [mine, other]).when()
    assert not Passes("b", [mine]).when()


def today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()
