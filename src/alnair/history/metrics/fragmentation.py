"""Stranded GPU over time, by cause: what was free and of no use to the workload, and why.

F is that of FGD (Weng et al., *Beware of Fragmentation*, USENIX ATC'23, section 3), as
`alnair.scheduler.published.fragmentation` computes it for one moment; the workload is made of the
history's own pods. F knows no memory; what is stranded for lack of memory alone comes on top of it.
"""

from collections import Counter
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from alnair.history.history import History
from alnair.history.metrics.states import States
from alnair.history.metrics.steps import Floats, Steps, summed
from alnair.scheduler.published.fragmentation import COVERED

#: Why free GPU is of no use, of a pod of the workload and a node:
#: it asks for no GPU; it names other models; it lacks just cores, just memory, or several things;
#: pieces are smaller than it asks for of each GPU; they are large enough, and too few.
CAUSES: Final = (
    "no-gpu-asked",
    "model",
    "cpu",
    "memory",
    "several",
    "gpu-too-small",
    "gpu-too-few",
)
_NONE, _MODEL, _CPU, _MEMORY, _SEVERAL, _SMALL, _FEW = range(len(CAUSES))

Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]


class Wanted(msgspec.Struct, frozen=True):
    """Pods of the workload alike in what they ask for; `share` is their part of it (0-1)."""

    share: float
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    models: tuple[str, ...]


def workload(history: History) -> tuple[Wanted, ...]:
    """Return the most frequent classes of the history's pods that cover 95 % of them."""
    counts: Counter[tuple[int, int, int, tuple[str, ...]]] = Counter()
    memory: dict[tuple[int, int, int, tuple[str, ...]], Counter[int]] = {}
    for pod in history.pods.values():
        key = (pod.cpu_milli, pod.gpus, pod.gpu_milli, pod.models)
        counts[key] += 1
        memory.setdefault(key, Counter())[pod.memory_mib] += 1
    kept = []
    covered = 0
    for key, count in counts.most_common():
        if covered >= COVERED * counts.total():
            break
        kept.append((key, count))
        covered += count
    # Classes are those of FGD, without memory; each gets the one that most of its pods ask for.
    return tuple(
        Wanted(count / covered, key[0], memory[key].most_common(1)[0][0], *key[1:])
        for key, count in kept
    )


def stranded(states: States, mix: tuple[Wanted, ...]) -> dict[str, Steps]:
    """Return the GPUs that are stranded by each cause."""
    rows, back = _alike(states, mix)
    lost = _lost(states, rows, mix)[back]
    # Of each node only the change counts, so that the sum over nodes follows from those in time.
    change = lost.copy()
    same = states.node[1:] == states.node[:-1]
    change[1:][same] -= lost[:-1][same]
    found = {}
    for column, cause in enumerate(CAUSES):
        moved = change[:, column] != 0
        found[cause] = summed(states.time[moved], change[moved, column])
    return found


def fgd(by_cause: dict[str, Steps]) -> Steps:
    """Return F, in GPUs."""
    parts = [steps for cause, steps in by_cause.items() if cause != CAUSES[_MEMORY]]
    times = np.concatenate([steps.times for steps in parts])
    changes = np.concatenate([np.diff(steps.values, prepend=0.0) for steps in parts])
    return summed(times, changes)


def _alike(states: States, mix: tuple[Wanted, ...]) -> tuple[Rows, Rows]:
    """Return one row of each kind of states that the workload cannot tell apart, and which it is.

    A busy cluster is in few of them: free cores and memory matter only against what is asked.
    """
    cpu = np.searchsorted(sorted({w.cpu_milli for w in mix}), states.cpu, side="right")
    memory = np.searchsorted(sorted({w.memory_mib for w in mix}), states.memory, side="right")
    key = np.column_stack((states.model, cpu, memory, np.sort(states.gpus, axis=1)))
    packed = np.ascontiguousarray(key).view(np.dtype((np.void, key.itemsize * key.shape[1])))
    _, first, back = np.unique(packed.ravel(), return_index=True, return_inverse=True)
    return first, back.ravel()


def _lost(states: States, rows: Rows, mix: tuple[Wanted, ...]) -> Floats:
    """Return the GPUs stranded by each cause in these rows, the shape (rows, causes)."""
    free = states.gpus[rows] / 1000.0
    cpu, memory, model = states.cpu[rows], states.memory[rows], states.model[rows]
    total = free.sum(axis=1)
    found = np.zeros((len(rows), len(CAUSES)))
    pieces: dict[tuple[int, int], tuple[Mask, Floats]] = {}
    for wanted in mix:
        if not wanted.gpus:
            found[:, _NONE] += wanted.share * total
            continue
        ask = (wanted.gpus, wanted.gpu_milli)
        if ask not in pieces:
            large = states.gpus[rows] >= wanted.gpu_milli
            pieces[ask] = (large.sum(axis=1) < wanted.gpus, (free * large).sum(axis=1))
        few, useful = pieces[ask]
        no_cpu, no_memory = cpu < wanted.cpu_milli, memory < wanted.memory_mib
        other = _other_model(states, model, wanted)
        lacks = few.astype(np.int8) + no_cpu + no_memory
        several = ~other & (lacks > 1)
        alone = ~other & (lacks == 1)
        none_or_memory = ~other & ((lacks == 0) | (alone & no_memory))
        small = total - useful
        for cause, part in (
            (_MODEL, total * other),
            (_SEVERAL, total * several),
            (_CPU, total * (alone & no_cpu)),
            (_MEMORY, useful * (alone & no_memory)),
            (_SMALL, small * (none_or_memory | (alone & few))),
            (_FEW, useful * (alone & few)),
        ):
            found[:, cause] += wanted.share * part
    return found


def _other_model(states: States, model: NDArray[np.int64], wanted: Wanted) -> Mask:
    if not wanted.models:
        return np.zeros(len(model), dtype=np.bool_)
    other = np.array([name not in wanted.models for name in states.models], dtype=np.bool_)
    found: Mask = other[model]
    return found
