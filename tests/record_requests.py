"""Notes what components ask real API servers for, part by part: `make record-requests` runs this.

record_requests.py [PART...]

Without parts all are run anew. With parts, such as what failed before, those are run again, and the
file of the repository is written when every part has been noted.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from kit import rights

ROOT = Path(__file__).parents[1]
NOTES = ROOT / "build" / "requests"
_TESTS = ROOT / "tests" / "integration"


def parts() -> dict[str, list[Path]]:
    """The tests of each part: a few minutes, which may be run at another time than the others."""
    real = set((_TESTS / "real_node").glob("test_*.py"))
    found = {
        "scheduler": [_TESTS / "scheduler"],
        "installed": sorted(one for one in real if one.name.startswith("test_installed")),
        "profiler": sorted(one for one in real if one.name.startswith("test_p")),
    }
    return {**found, "real-node": sorted(real.difference(*found.values()))}


def run(name: str, tests: list[Path]) -> bool:
    """Run a part; what failed by chance has a second try. Returns whether all has been noted."""
    noted, under_way = NOTES / f"{name}.tsv", NOTES / f"{name}.part"
    noted.unlink(missing_ok=True)
    under_way.unlink(missing_ok=True)
    for flags in ([], ["--last-failed"]):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *flags, *map(str, tests)],
            check=False,
            cwd=ROOT,
            env={**os.environ, "ALNAIR_RECORD_REQUESTS": str(under_way)},
        )
        if done.returncode == 0 and under_way.exists():
            under_way.rename(noted)
            return True
    return False


def main(wanted: list[str]) -> None:
    """Run what is wanted, and write the file if that was the last of it."""
    every = parts()
    if unknown := [name for name in wanted if name not in every]:
        sys.exit(f"record-requests: there is no part {unknown[0]}: name some of {', '.join(every)}")
    if not wanted:
        shutil.rmtree(NOTES, ignore_errors=True)
    NOTES.mkdir(parents=True, exist_ok=True)
    failed = [name for name in wanted or every if not run(name, every[name])]
    notes = {name: NOTES / f"{name}.tsv" for name in every}
    if missing := [name for name, path in notes.items() if not path.exists()]:
        print(f"nothing is written yet: make record-requests PARTS='{' '.join(missing)}'")
    else:
        rights.write(rights.read_all(notes.values()))
        print(f"written: {rights.RECORDED.relative_to(ROOT)}")
    if failed:
        sys.exit(f"record-requests: tests failed in {', '.join(failed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
