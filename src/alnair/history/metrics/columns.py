"""A history in columns: one row per stay, and per GPU that a stay has a part of."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from alnair.history.history import History, PodHistory, Stay
from alnair.history.metrics.steps import Floats

Integers = NDArray[np.int64]

#: Thousandths of a GPU.
_WHOLE = 1000.0
_MIB = 1 << 20


class Stays(msgspec.Struct, frozen=True):
    """All stays, in the order of the pods, the shape (stays,) each.

    Attributes:
        pod, node: positions in the history.
        begin, end: seconds; what lasts ends with the history.
        gpus: held.
        working: GPUs that work for it, on average; nan = nobody knows.
    """

    pod: Integers
    node: Integers
    begin: Floats
    end: Floats
    gpus: Floats
    working: Floats


class Parts(msgspec.Struct, frozen=True):
    """All parts of GPUs, the shape (parts,) each: of which stay, which GPU of the node, milli."""

    stay: Integers
    slot: Integers
    milli: Floats


class Columns(msgspec.Struct, frozen=True):
    """A history in columns.

    Attributes:
        gpus: per node, how many.
    """

    stays: Stays
    parts: Parts
    gpus: Integers


def asked(pod: PodHistory) -> float:
    """Return the GPUs that a pod asks for, a half is 0.5."""
    return pod.gpus * pod.gpu_milli / _WHOLE


def counted(history: History) -> list[PodHistory]:
    """Return the pods of the history's jobs; others only take room."""
    return [pod for pod in history.pods.values() if pod.job in history.jobs]


def end_of(stay: Stay, history: History) -> float:
    """Return when a stay ended, or the end of the history; clocks of live clusters may disagree."""
    return max(history.end if stay.end is None else stay.end, stay.begin)


def columns(history: History) -> Columns:
    """Return a history in columns.

    Raises:
        ValueError: a pod holds a GPU, or is on a node, that is not in the history.
    """
    rows = {name: row for row, name in enumerate(history.nodes)}
    slots = {
        name: {gpu.uuid: slot for slot, gpu in enumerate(item.node.gpus)}
        for name, item in history.nodes.items()
    }
    utils = {name: job.util for name, job in history.jobs.items()}
    stays: list[tuple[float, ...]] = []
    parts: list[tuple[float, ...]] = []
    for row, pod in enumerate(history.pods.values()):
        util = utils.get(pod.job)
        for stay in pod.stays:
            if stay.node not in rows:
                raise ValueError(f"pod {pod.uid}: node {stay.node!r} is not in the history")
            there = slots[stay.node]
            gpus = 0.0
            for part in stay.gpus:
                slot = there.get(part.uuid)
                if slot is None:
                    raise ValueError(
                        f"pod {pod.uid}: node {stay.node} has no GPU {part.uuid!r} in the history"
                    )
                parts.append((len(stays), slot, part.milli))
                gpus += part.milli / _WHOLE
            end = end_of(stay, history)
            working = _working(stay, gpus, util, end)
            stays.append((row, rows[stay.node], stay.begin, end, gpus, working))
    s = np.array(stays, dtype=np.float64).reshape(-1, 6)
    p = np.array(parts, dtype=np.float64).reshape(-1, 3)
    return Columns(
        Stays(s[:, 0].astype(np.int64), s[:, 1].astype(np.int64), *(s[:, i] for i in range(2, 6))),
        Parts(p[:, 0].astype(np.int64), p[:, 1].astype(np.int64), p[:, 2]),
        np.array([item.node.gpu_count for item in history.nodes.values()], dtype=np.int64),
    )


def _working(stay: Stay, gpus: float, util: float | None, end: float) -> float:
    if stay.used is not None:
        return stay.used / (end - stay.begin) if end > stay.begin else 0.0
    if not gpus:
        return 0.0
    return float("nan") if util is None else gpus * util / 100.0


def node_sizes(history: History) -> Floats:
    """Return millicores and MiB of each node, the shape (nodes, 2)."""
    found = [
        (item.node.allocatable.get("cpu", 0), item.node.allocatable.get("memory", 0) // _MIB)
        for item in history.nodes.values()
    ]
    return np.array(found, dtype=np.float64).reshape(-1, 2)
