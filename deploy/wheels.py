"""Builds Alnair's wheels into dist/: the pure one, and one per processor. `make wheel` runs it."""

import os
import re
import sys
from pathlib import Path

from alnair.cli.progress import Display
from alnair.local.errors import LocalClusterError
from alnair.local.own_images import wheel

DIST = Path(__file__).parents[1] / "dist"


def main() -> None:
    """Builds, has auditwheel judge, and prints what was made.

    Raises:
        LocalClusterError: A wheel cannot be built, or asks too much of a machine.
    """
    for old in DIST.glob("alnair-*.whl"):
        old.unlink()
    with Display() as report:
        for machine in (None, *wheel.MACHINES):
            made = wheel.build(machine, DIST, os.environ, report)
            judged = ""
            if machine:
                said = wheel.audit(made, os.environ, report)
                tag = f'"manylinux_2_17_{machine}"'
                if tag not in re.sub(r"\s+", " ", said):
                    raise LocalClusterError(f"{made.name} is not clean: {said}")
                judged = "  auditwheel: manylinux2014, clean"
            size = made.stat().st_size / 1e6
            print(f"{made.relative_to(DIST.parent)}  {size:.1f} MB{judged}")


if __name__ == "__main__":
    try:
        main()
    except LocalClusterError as error:
        sys.exit(f"make wheel: {error}")
