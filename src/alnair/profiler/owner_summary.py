"""What the pods of one owner used, as the owner's annotation says it.

The largest figure of each metric over all pods, also of those that are gone, and a line for each
pod; no longer than an annotation may be, as all those of an object share 256 KiB.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from alnair.model import usage
from alnair.model.usage import PodUsage

#: Bytes of the whole document.
MOST_BYTES: Final = 2048
#: Metrics in the line of a pod.
_OF_A_POD: Final = (usage.GPU_UTIL, usage.GPU_MEMORY_MIB, usage.CPU_CORES, usage.MEMORY_MIB)


class PodOfOwner(msgspec.Struct, frozen=True):
    """A pod of an owner; `outcome` is empty while it lasts, `seconds` is how long it ran."""

    name: str
    outcome: str
    seconds: float | None
    used: PodUsage


def summary(pods: Iterable[PodOfOwner], count: int, time: str) -> bytes:
    """Return the document as JSON, of 2 KiB at most.

    Args:
        pods: Those that were measured; the first ones have a line of their own.
        count: How many pods there are or were.
        time: RFC 3339, when this was true.
    """
    known = list(pods)
    most: dict[str, float] = {}
    for pod in known:
        for name, digest in pod.used.metrics.items():
            most[name] = max(most.get(name, 0.0), digest.max)
    document: dict[str, Any] = {
        "v": 1,
        "t": time,
        "max": {name: _short(value) for name, value in sorted(most.items())},
        "pods": count,
        "of": [],
    }
    room = MOST_BYTES - len(msgspec.json.encode(document))
    for pod in known:
        line = _line(pod)
        room -= len(msgspec.json.encode(line)) + 1
        if room < 0:
            break
        document["of"].append(line)
    return msgspec.json.encode(document)


def _line(pod: PodOfOwner) -> dict[str, Any]:
    line: dict[str, Any] = {"pod": pod.name}
    if pod.outcome:
        line["outcome"] = pod.outcome
    if pod.seconds is not None:
        line["seconds"] = _short(pod.seconds)
    for name in _OF_A_POD:
        if (digest := pod.used.metrics.get(name)) is not None:
            line[name] = {"mean": _short(digest.mean), "max": _short(digest.max)}
    return line


def _short(value: float) -> float:
    """Four digits are more than a measurement is worth."""
    return float(f"{value:.4g}")
