"""In which order a trace's pods arrive, and how a list is inflated beyond the cluster's GPUs.

The inflation follows the protocol of FGD's evaluation (Weng et al., USENIX ATC'23): draws with
replacement from the list sorted by name. Go's generator cannot be replayed from Python, so either
the draws are our own, seeded, or the published order is read from a file.
"""

import random
import re
from collections.abc import Iterable, Sequence

import msgspec

from alnair.model.plurals import counted
from alnair.traces.files import TraceFileError
from alnair.traces.openb import WHOLE, TraceNode, TracePod

# The K-th further copy of a pod, named as the published orders name it.
_COPY = re.compile(r"(?P<name>.+)-tuned-(?P<number>\d+)")


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """A pod of the list, under the name that it arrives with."""

    name: str
    pod: TracePod


def capacity(nodes: Iterable[TraceNode]) -> int:
    """Return the milli-GPUs of the nodes."""
    return WHOLE * sum(node.gpus for node in nodes)


def in_trace_order(
    pods: Sequence[TracePod], *, tune: float | None = None, capacity: int = 0, seed: int = 0
) -> list[Arrival]:
    """Return the pods as listed, inflated or thinned to a demand of `tune` times `capacity`.

    Args:
        pods: The list.
        tune: Demand to reach, as a part of the capacity; None leaves the list as it is.
        capacity: Milli-GPUs of the cluster.
        seed: Of the draws.
    """
    found = [Arrival(pod.name, pod) for pod in pods]
    if tune is None:
        return found
    wanted = tune * capacity
    draw = random.Random(seed)
    demand = sum(pod.demand for pod in pods)
    if demand > wanted:
        return _thinned(found, demand, wanted, draw)
    by_name = sorted(pods, key=lambda pod: pod.name)
    if not any(pod.gpu_milli for pod in by_name):
        return found  # no number of copies would raise the demand
    number = 0
    while True:
        pod = draw.choice(by_name)
        # A quirk of the published protocol: this looks at one GPU of the pod, not at all of them.
        if demand + pod.gpu_milli > wanted:
            return found
        demand += pod.demand
        found.append(Arrival(f"{pod.name}-tuned-{number}", pod))
        number += 1


def _thinned(
    found: list[Arrival], demand: int, wanted: float, draw: random.Random
) -> list[Arrival]:
    dropped: set[int] = set()
    for index in draw.sample(range(len(found)), len(found)):
        if demand <= wanted:
            break
        demand -= found[index].pod.demand
        dropped.add(index)
    return [arrival for index, arrival in enumerate(found) if index not in dropped]


def in_given_order(pods: Sequence[TracePod], order: Sequence[str], source: str) -> list[Arrival]:
    """Return the pods as the order names them; `NAME-tuned-K` is a further copy of NAME.

    Raises:
        TraceFileError: A name is not in the list, or occurs twice.
    """
    by_name = {pod.name: pod for pod in pods}
    found: dict[str, Arrival] = {}
    for line, name in enumerate(order, 1):
        copy = _COPY.fullmatch(name)
        pod = by_name.get(name) or (by_name.get(copy["name"]) if copy else None)
        if pod is None:
            raise TraceFileError(
                f"{source}, line {line}: {name!r} is not in the pod list: give the list it orders"
            )
        if name in found:
            raise TraceFileError(f"{source}, line {line}: {name!r} is there twice: drop one")
        found[name] = Arrival(name, pod)
    return list(found.values())


def in_seeded_order(
    pods: Sequence[TracePod], *, tune: float | None, capacity: int, seed: int
) -> list[Arrival]:
    """Return the pods in a random order of ours, then what `in_trace_order` adds or drops."""
    shuffled = sorted(pods, key=lambda pod: pod.name)
    random.Random(f"pods/{seed}").shuffle(shuffled)
    return in_trace_order(shuffled, tune=tune, capacity=capacity, seed=seed)


def nodes_in_seeded_order(nodes: Iterable[TraceNode], seed: int) -> list[str]:
    """Return the names of the nodes in a random order of ours."""
    order = sorted(node.name for node in nodes)
    random.Random(f"nodes/{seed}").shuffle(order)
    return order


def nodes_in_given_order(
    nodes: Iterable[TraceNode], order: Sequence[str], source: str
) -> list[str]:
    """Return the order if it names each node just once.

    Raises:
        TraceFileError: It does not.
    """
    there = {node.name for node in nodes}
    seen: dict[str, int] = {}
    for line, name in enumerate(order, 1):
        if name not in there:
            raise TraceFileError(
                f"{source}, line {line}: {name!r} is not in the node list: give the list it orders"
            )
        if name in seen:
            raise TraceFileError(
                f"{source}, line {line}: {name!r} is on line {seen[name]} already: drop one"
            )
        seen[name] = line
    if missing := sorted(there - set(seen)):
        raise TraceFileError(
            f"{source}: the order lacks {counted(len(missing), 'node')} of the list, such "
            f"as {missing[0]!r}: "
            "name each of them once"
        )
    return list(order)
