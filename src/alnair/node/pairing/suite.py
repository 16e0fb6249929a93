"""Six workloads of different kinds, alone and in all pairs: what a GPU model is like to share."""

import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Final

from alnair.node.pairing import suite_workload
from alnair.node.pairing.measuring import Measure, Times, rates
from alnair.node.pairing.workload import Command, RunError
from alnair.profiler.pair_speeds import Round

#: Their names, as tables have them.
KINDS: Final = tuple(suite_workload.KINDS)
#: The program, which needs nothing but Python and a driver.
PROGRAM: Final = Path(suite_workload.__file__)
#: What it prints.
PATTERN: Final = r"^step (?P<step>\d+)"

Pair = tuple[str, str]


def command(kind: str) -> Command:
    """Return how a workload is run on this machine."""
    return Command((sys.executable, "-I", str(PROGRAM), kind), PATTERN)


def command_in_container(kind: str) -> Command:
    """Return how a workload is run in a container that has Python and a driver, and no Alnair."""
    return Command(("python3", "-c", PROGRAM.read_text(), kind), PATTERN)


def pairs(kinds: Sequence[str]) -> list[Pair]:
    """Return all pairs, those of a kind with itself among them."""
    return list(combinations_with_replacement(kinds, 2))


def rounds_of_all(
    commands: Mapping[str, Command],
    times: Times,
    count: int,
    tell: Callable[[str, int, int], None],
    measure: Measure = rates,
) -> dict[Pair, list[Round]]:
    """Measure each kind alone and all pairs of them, several times.

    A round measures everything once, so that what drifts falls on all alike; every other one goes
    backwards. A kind's rate alone is that of the same round.

    Args:
        commands: By kind.
        times: Of each measurement.
        count: Of rounds.
        tell: Takes what is measured next, how many measurements are done, and of how many.
        measure: Runs workloads at the same time; by default as processes of this machine.

    Returns:
        The rounds of each pair; none where the two do not run together, as for want of memory.

    Raises:
        RunError: A kind cannot even be measured alone.
    """
    found: dict[Pair, list[Round]] = {pair: [] for pair in pairs(tuple(commands))}
    unfit: set[Pair] = set()
    total, done = count * (len(commands) + len(found)), 0
    for number in range(count):
        runs: list[tuple[str, ...]] = [*((kind,) for kind in commands), *found]
        seen: dict[tuple[str, ...], tuple[float, ...]] = {}
        for run in reversed(runs) if number % 2 else runs:
            tell(f"round {number + 1} of {count}: {' and '.join(run)}", done, total)
            done += 1
            if run in unfit:
                continue
            try:
                seen[run] = measure([commands[kind] for kind in run], times)
            except RunError:
                if len(run) == 1:
                    raise
                unfit.add((run[0], run[1]))
        for pair, rounds in found.items():
            if pair in seen:
                alone = seen[pair[0],][0], seen[pair[1],][0]
                rounds.append(Round(alone, (seen[pair][0], seen[pair][1])))
    tell("all is measured", total, total)
    return {pair: [] if pair in unfit else rounds for pair, rounds in found.items()}
