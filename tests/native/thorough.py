"""`make test-native`: the native tests by other means, and what is too long for every run of them.

The tests built with sanitizers and under valgrind; fuzzers of what reads bytes that others wrote;
the memory limit under 10^6 random calls and 1,000 SIGKILLs; and a virtual hour of lies beside two
honest tenants. Ends with a table; logs are in build/test-native. `--only` chooses parts by name.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from native import parts  # noqa: E402  (found by the line above)
from native.build import ROOT  # noqa: E402

SANITIZERS = ("address", "undefined", "thread")
#: Tests of accuracy and speed mean nothing in a program that a sanitizer slows down tenfold.
NOT_TIMING = "not timing"
#: Under valgrind a test takes fifty times as long: these go through every module of the library.
VALGRIND = "valgrind"
FUZZERS = ROOT / "build" / "native-fuzz"
#: On the server's loop alone, and with the library and NVML.
LIES = ("tests/unit/node/vgpu/test_driver_accounts.py", "tests/native/test_attack_compute.py")
#: Seconds of the hour in which a tenant lies.
HOUR = "3600"


def every(seconds: float, given: list[str]) -> Iterator[parts.Part]:
    """All parts, in the order of running.

    Args:
        seconds: Of each fuzzer.
        given: Further arguments of pytest.
    """
    for sanitizer in SANITIZERS:
        words = ("tests/native", "-m", NOT_TIMING, *given)
        yield parts.by_pytest(sanitizer, *words, ALNAIR_SANITIZE=sanitizer)
    if shutil.which("valgrind"):
        words = ("tests/native", "-m", VALGRIND, *given)
        yield parts.by_pytest("valgrind", *words, ALNAIR_VALGRIND="1")
    else:
        print("valgrind: skipped, it is not here (Debian: apt-get install valgrind)")
    yield from fuzzers(seconds)
    soak = str(Path(__file__).with_name("soak_memory.py"))
    yield parts.by_status("soak", sys.executable, soak)
    # Each test is allowed more than the five minutes of others.
    long = ("-k", "who_lies", "-o", "timeout=3600")
    yield parts.by_pytest("lies", *LIES, *long, ALNAIR_LIES_SECONDS=HOUR)


def fuzzers(seconds: float) -> Iterator[parts.Part]:
    """The fuzzers of native/fuzz; each is built where its part begins."""
    for source in sorted((ROOT / "native" / "fuzz").glob("*.c")):
        if source.stem not in ("driver", "world"):
            program = FUZZERS / f"fuzz_{source.stem}"
            make = f"make -s -C native fuzz PYTHON={sys.executable} && exec {program} {seconds:g}"
            # By this path and not by the program's own: the sanitizer makes its calls of dlopen.
            libraries = str(ROOT / "build" / "native")
            words = "sh", "-c", make
            yield parts.by_inputs(f"fuzz-{source.stem}", *words, LD_LIBRARY_PATH=libraries)


def main() -> int:
    """Runs what the command line asks for; 1 where a part failed."""
    parser = argparse.ArgumentParser(prog="make test-native", description=__doc__)
    parser.add_argument("--only", help="parts, comma-separated (default: all)")
    parser.add_argument("--seconds", type=float, default=60, help="for each fuzzer (default: 60)")
    parser.add_argument("tests", nargs="*", help="further arguments of pytest")
    given = parser.parse_args()
    known = list(every(given.seconds, given.tests))
    wanted = given.only.split(",") if given.only else [part.name for part in known]
    if strange := set(wanted) - {part.name for part in known}:
        names = ", ".join(part.name for part in known)
        parser.error(f"--only: no part is called {', '.join(sorted(strange))}; there are {names}")
    rows = [parts.run(part) for part in known if part.name in wanted]
    print(f"\n{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the end")
    print(parts.table(rows))
    return int(any(row.counts.failed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
