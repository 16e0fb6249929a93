"""Nodes that fail and come back, drawn by a seed: exponential times to failure and to repair."""

import heapq
import random
from collections.abc import Iterator, Sequence
from typing import Final

from alnair.model.nodes import Node
from alnair.sim.jobs import NodeEvent
from alnair.traces.files import TraceFileError

#: More events would be a mistake of unit.
_MOST: Final = 1_000_000


def failures(
    nodes: Sequence[Node], until: float, *, mtbf: float, mttr: float, seed: int
) -> tuple[NodeEvent, ...]:
    """Return when nodes fail and join again, in the order of time.

    Each node has draws of its own, by its name: other nodes beside it change nothing for it.

    Args:
        nodes: Of the cluster.
        until: No node fails later, seconds from the begin; those that are away still come back.
        mtbf: Mean seconds between a node's return and its next failure; 0 = none fail.
        mttr: Mean seconds from a failure to the return.
        seed: Of the draws.

    Raises:
        TraceFileError: There would be more than a million events.
    """
    if not mtbf:
        return ()
    if 2 * len(nodes) * until / (mtbf + mttr) > _MOST:
        raise TraceFileError(
            f"--node-mtbf {mtbf:g}: {len(nodes)} nodes would fail more than {_MOST // 2} times in "
            f"{until:g} s: write seconds"
        )
    courses = [_course(node, until, mtbf, mttr, f"{seed}/{node.name}") for node in nodes]
    return tuple(heapq.merge(*courses, key=lambda event: event.time))


def _course(node: Node, until: float, mtbf: float, mttr: float, seed: str) -> Iterator[NodeEvent]:
    draw = random.Random(seed)
    now = draw.expovariate(1 / mtbf)
    while now < until:
        yield NodeEvent(now, "fails", node)
        now += draw.expovariate(1 / mttr)
        yield NodeEvent(now, "joins", node)
        now += draw.expovariate(1 / mtbf)
