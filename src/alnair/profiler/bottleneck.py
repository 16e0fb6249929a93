"""What holds a job back, told by what it used, with the figures that say so.

Three questions, in this order: is the GPU used at all; is it used all the time; and if not, which
other thing was worked at its limit. Where nothing was, the answer is unknown, and not a guess.
"""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from alnair.model import usage
from alnair.model.usage import Digest

Bound = Literal[
    "input-bound", "GPU-bound", "communication-bound", "memory-bound", "idle", "unknown"
]
#: A shorter time says nothing.
LEAST_SECONDS: Final = 30.0
#: Percent of a GPU: unused below, used all the time above.
_UNUSED: Final = 3.0
_FULL: Final = 80.0
#: Percent of time in which the GPU's memory is at work, above which its kernels wait for it.
_MEMORY_TRAFFIC: Final = 60.0
#: Kernels that run all the time and hardly touch memory wait for others: collectives spin so.
_SPINNING: Final = 10.0
#: MiB/s in both directions that are worth waiting for, on the network and between GPUs.
_NETWORK: Final = 50.0
_NVLINK: Final = 5_000.0
#: Reading at this rate, MiB/s, is what a job does.
_READING: Final = 100.0
#: Parts of the time: waiting for a processor, for storage, for memory; throttled.
_PRESSURE: Final = {
    usage.CPU_PRESSURE: 0.2,
    usage.IO_PRESSURE: 0.1,
    usage.MEMORY_PRESSURE: 0.1,
    usage.CPU_THROTTLED: 0.1,
}
#: Part of the limit of processors that is as good as all of it.
_AT_LIMIT: Final = 0.9


class Evidence(msgspec.Struct, frozen=True):
    """A figure that speaks for the answer.

    Attributes:
        metric: As in `alnair.model.usage`.
        value: What was measured, in its unit.
        bound: What it was compared with.
        text: What that means.
    """

    metric: str
    value: float
    bound: float
    text: str


class Bottleneck(msgspec.Struct, frozen=True):
    """What holds a job back.

    Attributes:
        bound: By what.
        evidence: The figures, the strongest first; of `unknown`, what was looked at.
    """

    bound: Bound
    evidence: tuple[Evidence, ...]


def bottleneck(
    metrics: Mapping[str, Digest], *, cpu_limit_cores: float | None = None
) -> Bottleneck:
    """Tell what holds a job back.

    Args:
        metrics: Digests of a pod, by the names of `alnair.model.usage`; what is absent was not
            measured, and nothing is concluded from that.
        cpu_limit_cores: How many processors it may use; None if any number.
    """
    util = metrics.get(usage.GPU_UTIL)
    if util is None:
        why = Evidence(usage.GPU_UTIL, 0.0, 0.0, "the use of the GPU was not measured")
        return Bottleneck("unknown", (why,))
    if util.seconds < LEAST_SECONDS:
        text = f"measured for {util.seconds:.0f} s only: {LEAST_SECONDS:.0f} s would tell"
        return Bottleneck("unknown", (Evidence(usage.GPU_UTIL, util.seconds, LEAST_SECONDS, text),))
    if util.p95 < _UNUSED:
        text = f"95 % of the time the GPU is used by less than {util.p95:.1f} %"
        return Bottleneck("idle", (Evidence(usage.GPU_UTIL, util.p95, _UNUSED, text),))
    talks = _communication(metrics)
    if util.mean >= _FULL:
        return _of_a_full_gpu(metrics, util, talks)
    rest = Evidence(
        usage.GPU_UTIL, util.mean, _FULL, f"the GPU rests for {100 - util.mean:.0f} % of the time"
    )
    host = _pressure(metrics, usage.MEMORY_PRESSURE, "for memory")
    # The cause that is furthest beyond its bound.
    causes: list[tuple[Bound, list[Evidence]]] = [
        ("input-bound", _input(metrics, cpu_limit_cores)),
        ("communication-bound", talks),
        ("memory-bound", host),
    ]
    bound, evidence = max(causes, key=lambda cause: max(map(_excess, cause[1]), default=0.0))
    if not evidence:
        return Bottleneck("unknown", (rest,))
    return Bottleneck(bound, (*sorted(evidence, key=_excess, reverse=True), rest))


def _of_a_full_gpu(
    metrics: Mapping[str, Digest], util: Digest, talks: list[Evidence]
) -> Bottleneck:
    full = Evidence(
        usage.GPU_UTIL, util.mean, _FULL, f"the GPU is used for {util.mean:.0f} % of the time"
    )
    traffic = metrics.get(usage.GPU_MEMORY_COPY_UTIL)
    if traffic is not None and traffic.mean >= _MEMORY_TRAFFIC:
        text = f"its memory is at work for {traffic.mean:.0f} % of the time"
        why = Evidence(usage.GPU_MEMORY_COPY_UTIL, traffic.mean, _MEMORY_TRAFFIC, text)
        return Bottleneck("memory-bound", (why, full))
    if talks and traffic is not None and traffic.mean < _SPINNING:
        text = f"kernels run, but use its memory for {traffic.mean:.0f} % of the time: they wait"
        why = Evidence(usage.GPU_MEMORY_COPY_UTIL, traffic.mean, _SPINNING, text)
        return Bottleneck("communication-bound", (*talks, why, full))
    return Bottleneck("GPU-bound", (full,))


def _communication(metrics: Mapping[str, Digest]) -> list[Evidence]:
    """Traffic in both directions: a job that only reads has it in one."""
    found = []
    for received, sent, bound, where in (
        (usage.NET_RX_MIB_S, usage.NET_TX_MIB_S, _NETWORK, "over the network"),
        (usage.NVLINK_RX_MIB_S, usage.NVLINK_TX_MIB_S, _NVLINK, "between GPUs"),
    ):
        if received in metrics and sent in metrics:
            both = min(metrics[received].mean, metrics[sent].mean)
            if both >= bound:
                text = f"{both:.0f} MiB/s and more go {where}, in both directions"
                name = received if metrics[received].mean <= metrics[sent].mean else sent
                found.append(Evidence(name, both, bound, text))
    return found


def _input(metrics: Mapping[str, Digest], limit: float | None) -> list[Evidence]:
    found = _pressure(metrics, usage.CPU_PRESSURE, "for a processor")
    found += _pressure(metrics, usage.IO_PRESSURE, "for storage")
    throttled = metrics.get(usage.CPU_THROTTLED)
    most = _PRESSURE[usage.CPU_THROTTLED]
    if throttled is not None and throttled.mean >= most:
        text = f"its limit of processors stops it in {throttled.mean:.0%} of all periods"
        found.append(Evidence(usage.CPU_THROTTLED, throttled.mean, most, text))
    cores = metrics.get(usage.CPU_CORES)
    if cores is not None and limit and cores.mean >= _AT_LIMIT * limit:
        text = f"it uses {cores.mean:.1f} of the {limit:g} processors that it may use"
        found.append(Evidence(usage.CPU_CORES, cores.mean, _AT_LIMIT * limit, text))
    for reading, writing in (
        (usage.IO_READ_MIB_S, usage.IO_WRITE_MIB_S),
        (usage.NET_RX_MIB_S, usage.NET_TX_MIB_S),
    ):
        read, written = metrics.get(reading), metrics.get(writing)
        if (
            read is not None
            and read.mean >= _READING
            and (written is None or read.mean >= 3 * written.mean)
        ):
            text = f"it reads {read.mean:.0f} MiB/s"
            found.append(Evidence(reading, read.mean, _READING, text))
    return found


def _pressure(metrics: Mapping[str, Digest], name: str, what: str) -> list[Evidence]:
    digest = metrics.get(name)
    if digest is None or digest.mean < _PRESSURE[name]:
        return []
    return [
        Evidence(
            name, digest.mean, _PRESSURE[name], f"it waits {what} in {digest.mean:.0%} of the time"
        )
    ]


def _excess(evidence: Evidence) -> float:
    """How many times its bound a figure is."""
    return evidence.value / evidence.bound if evidence.bound else 0.0
