"""What every node had left, after each moment at which that changed."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from alnair.history.history import History
from alnair.history.metrics.columns import Columns, node_sizes
from alnair.history.metrics.steps import Floats
from alnair.model import names

_WHOLE = 1000.0
#: Columns of a state, before those of its GPUs.
_UP, _CPU, _MEMORY, _GPUS = 0, 1, 2, 3


class States(msgspec.Struct, frozen=True):
    """One row per change of a node, sorted by node and time; the shape (changes,) each.

    Attributes:
        cpu, memory: free millicores and MiB.
        gpus: free thousandths of each GPU, the shape (changes, most GPUs of a node); a GPU that the
            node does not have is never free, and nothing is while the node is not there.
        model: of the node's GPUs, a position in `models`.
    """

    node: NDArray[np.int64]
    time: Floats
    cpu: Floats
    memory: Floats
    gpus: Floats
    model: NDArray[np.int64]
    models: tuple[str, ...]


def states(history: History, table: Columns) -> States:
    """Return the states of all nodes of a history."""
    nodes, times, changes = _changes(history, table)
    order = np.lexsort((times, nodes))
    nodes, times = nodes[order], times[order]
    total = np.cumsum(changes[order], axis=0)
    # The sum ran on from node to node: what was there before a node's first row is not its own.
    first = np.append(True, nodes[1:] != nodes[:-1])[: len(nodes)]
    before = np.vstack((np.zeros((1, total.shape[1])), total))[:-1][first]
    total -= before[np.cumsum(first) - 1] if len(nodes) else 0.0
    # Of what happens at one moment only the outcome counts.
    last = np.append((nodes[1:] != nodes[:-1]) | (times[1:] != times[:-1]), True)[: len(nodes)]
    nodes, times, total = nodes[last], times[last], total[last]
    # Sums of parts such as 333.3 miss zero by rounding; soft shares add up to more than a GPU.
    left = np.round(total, 6) * (total[:, _UP] > 0.5)[:, None]
    models, of_node = _models(history)
    return States(
        nodes,
        times,
        left[:, _CPU],
        left[:, _MEMORY],
        np.maximum(left[:, _GPUS:], 0.0),
        of_node[nodes],
        models,
    )


def _changes(
    history: History, table: Columns
) -> tuple[NDArray[np.int64], Floats, NDArray[np.float64]]:
    """Return node, time and change of the columns of a state, in no order."""
    stays, parts = table.stays, table.parts
    width = _GPUS + int(table.gpus.max(initial=0))
    pods = list(history.pods.values())
    asked = np.array([(p.cpu_milli, p.memory_mib) for p in pods], np.float64).reshape(-1, 2)
    taken = np.zeros((len(stays.pod), width))
    taken[:, _CPU : _MEMORY + 1] = asked[stays.pod]
    np.add.at(taken, (parts.stay, _GPUS + parts.slot), parts.milli)

    whole = np.zeros((len(history.nodes), width))
    whole[:, _UP] = 1.0
    whole[:, _CPU : _MEMORY + 1] = node_sizes(history)
    whole[:, _GPUS:] = _WHOLE * (np.arange(width - _GPUS) < table.gpus[:, None])
    there = [
        (row, sign, time)
        for row, item in enumerate(history.nodes.values())
        for begin, end in item.up
        for sign, time in ((1.0, begin), (-1.0, end))
        if time is not None
    ]
    ups = np.array(there, dtype=np.float64).reshape(-1, 3)
    of = ups[:, 0].astype(np.int64)
    return (
        np.concatenate((of, stays.node, stays.node)),
        np.concatenate((ups[:, 2], stays.begin, stays.end)),
        np.concatenate((whole[of] * ups[:, 1:2], -taken, taken)),
    )


def _models(history: History) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    of_node = [
        item.node.gpus[0].model
        if item.node.gpus
        else item.node.labels.get(names.GPU_MODEL_LABEL, "")
        for item in history.nodes.values()
    ]
    known = {model: number for number, model in enumerate(dict.fromkeys(of_node))}
    return tuple(known), np.array([known[model] for model in of_node], dtype=np.int64)
