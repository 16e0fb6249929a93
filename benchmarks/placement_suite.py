"""All measurements of docs/concepts/placement.md in one piece, and the page anew.

Runs the steps below one after another in processes of their own, and shows before each how long it
all took and about how long the rest will: each step has a share of the work, in minutes on two
quiet cores, and the pace so far says how much slower this machine is. Every step keeps what is done
in its file in `--out`, so the same command goes on after an interrupt. `--quick` runs a little of
each in a few minutes, to see that all of them work, and leaves the page alone.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from lib import placement_cases as cases

HERE = Path(__file__).parent
COMPARED = "opportunitycost,fgd,firstfit"
SHOWN = f"{COMPARED},bestfit,packing,clustering,dotprod,alnair-scheduler"
VARIANTS = ",".join(name for name in cases.variants() if not name.startswith("x"))
VARIED = "default,gpushare40,gpuspec20"


class Step(msgspec.Struct, frozen=True):
    """A script with its arguments.

    Attributes:
        out: the file of its results; empty if it keeps none.
        minutes: that it takes on two quiet cores, about.
        quick: what takes the place of the arguments with `--quick`.
    """

    script: str
    arguments: str
    out: str
    minutes: float
    quick: str

    def command(self, out: Path, *, quick: bool) -> list[str]:
        """Return the command line."""
        chosen = (self.quick if quick else self.arguments).split()
        file = ["--out", str(out / self.out)] if self.out else []
        return [sys.executable, str(HERE / self.script), *chosen, *file]


STEPS = (
    Step(
        "placement.py",
        f"--policies {SHOWN}",
        "placement.json",
        5,
        "--traces multigpu30 --seeds 42 --policies opportunitycost",
    ),
    Step(
        "placement.py",
        f"--traces {VARIED} --seeds 7 --policies {COMPARED} --variants {VARIANTS}",
        "placement-variants.json",
        2,
        "--traces multigpu30 --seeds 7 --policies opportunitycost --variants half",
    ),
    Step("placement_regimes.py", "", "placement-regimes.json", 3, "--mixes models --seeds 7"),
    Step(
        "placement.py",
        "--traces default --seeds 7 --variants ,x2,x4,x8 --workers 1 "
        f"--policies {COMPARED},alnair-scheduler",
        "placement-speed.json",
        2.5,
        "--traces multigpu30 --seeds 7 --workers 1 --policies firstfit",
    ),
    Step(
        "placement.py",
        "--traces default,gpuspec20 --seeds 43 --policies opportunitycost --online",
        "",
        0.5,
        "--traces multigpu30 --seeds 43 --policies opportunitycost --online",
    ),
    Step(
        "placement_wait.py",
        "--loads 0.85,0.95,1.05",
        "placement-wait.json",
        4,
        "--workloads openb --seeds 1",
    ),
    Step("placement_bound.py", "", "placement-bounds.json", 0.5, "--traces multigpu30"),
)
#: The page, and its plots.
PAGE_MINUTES = 0.5


def carry_out(out: Path, *, quick: bool) -> None:
    """Run all steps.

    Raises:
        subprocess.CalledProcessError: one of them failed.
    """
    begun = time.monotonic()
    todo = sum(step.minutes for step in STEPS) + PAGE_MINUTES
    total, done = len(STEPS) + (not quick), 0.0
    for number, step in enumerate(STEPS, 1):
        _say(number, total, " ".join(step.command(out, quick=quick)[1:]), begun, done, todo)
        subprocess.run(step.command(out, quick=quick), check=True, cwd=HERE, stdout=sys.stderr)
        done += step.minutes
    if not quick:
        _say(total, total, "placement_page.py", begun, done, todo)
        page = [sys.executable, str(HERE / "placement_page.py"), str(out)]
        subprocess.run(page, check=True, cwd=HERE)
    print(f"== done after {(time.monotonic() - begun) / 60:.1f} min", file=sys.stderr)


def _say(number: int, total: int, what: str, begun: float, done: float, todo: float) -> None:
    passed = (time.monotonic() - begun) / 60
    pace = passed / done if done else 1.0
    print(
        f"== step {number} of {total}: {what}; {passed:.0f} min so far, about "
        f"{pace * (todo - done):.0f} min left",
        file=sys.stderr,
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/placement"))
    parser.add_argument("--quick", action="store_true", help="a little of each, and no page")
    options = parser.parse_args(arguments)
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    try:
        carry_out(out, quick=options.quick)
    except subprocess.CalledProcessError as error:
        step = " ".join(error.cmd[1:])
        print(f"{step}: ended with {error.returncode}; the same command goes on", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the same command goes on where this ended", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
