"""Which containers use which GPU how much, and where that is not what they were given.

Two sources say whose a GPU is: the kubelet, who was given it, and the kernel, whose processes are
on it. Both count: a GPU that lies idle has a holder and no process, and a process that went round
the kubelet has a GPU and no right to it.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from alnair.model import usage
from alnair.profiler.pods.rates import Figures, energy, link_rates
from alnair.profiler.samples import GpuSample, ProcessSample

_FULL: Final = 100.0


class Holder(msgspec.Struct, frozen=True):
    """A container by its name; "" is no certain one of the pod."""

    pod: str
    container: str


class Given(msgspec.Struct, frozen=True):
    """A GPU, or a part of one, that a container was given.

    Attributes:
        holder: Who.
        uuid: Of the GPU or the MIG device.
        whole: All of it.
        memory_mib: That it may use; 0: not limited.
        charged_ns: Counter, nanoseconds of the GPU's time that the vGPU server charged to it; None
            where it does not.
    """

    holder: Holder
    uuid: str
    whole: bool
    memory_mib: int = 0
    charged_ns: int | None = None


class GpuUse(msgspec.Struct, frozen=True):
    """What a container uses of one GPU; what is not known is None.

    Attributes:
        util: Percent of the GPU's time.
        memory_copy: Percent of time in which the GPU's memory was read or written for it.
        memory_bytes: Charged to its processes.
        power_w: Its part of the GPU's power.
        energy_j: And of the energy since the last look.
        links: What went over the GPU's links, where it alone has the GPU.
    """

    util: float | None = None
    memory_copy: float | None = None
    memory_bytes: int | None = None
    power_w: float | None = None
    energy_j: float | None = None
    links: Figures = {}


class Kind(StrEnum):
    """How what was given and what is used differ."""

    USES_NOT_GIVEN = "uses-without-being-given"
    GIVEN_IDLE = "given-and-idle"
    UNMAPPED = "unmapped"


class Disagreement(msgspec.Struct, frozen=True):
    """One GPU on which they differ.

    Attributes:
        kind: How.
        uuid: Of the GPU.
        holder: Whose; None for processes of which nobody knows whose they are.
        count: Processes; of a GPU that is given and idle 0.
    """

    kind: Kind
    uuid: str
    holder: Holder | None
    count: int


class GpusUsed(msgspec.Struct, frozen=True):
    """What a look at the GPUs says.

    Attributes:
        uses: By (holder, GPU): all that were given one, and all that use one.
        disagreements: In the order of the GPUs.
    """

    uses: dict[tuple[Holder, str], GpuUse] = {}
    disagreements: tuple[Disagreement, ...] = ()


def devices(samples: Mapping[str, GpuSample]) -> dict[str, GpuSample]:
    """Return GPUs and MIG devices beside each other; a GPU that is divided counts by its parts."""
    found: dict[str, GpuSample] = {}
    for uuid, sample in samples.items():
        if sample.mig:
            found.update(sample.mig)
        else:
            found[uuid] = sample
    return found


def disagreements(
    uuid: str,
    processes: Iterable[ProcessSample],
    owners: Mapping[int, Holder | None],
    given: Iterable[Given],
) -> list[Disagreement]:
    """Compare who was given a GPU with whose processes are on it.

    Args:
        uuid: Of the GPU.
        processes: Those on it.
        owners: Pid → whose; None: a program of the node. A pid that is missing is of nobody known.
        given: All that was given on this GPU.
    """
    counts: dict[Holder, int] = {}
    unmapped = 0
    for process in processes:
        if process.pid not in owners:
            unmapped += 1
        elif (owner := owners[process.pid]) is not None:
            counts[owner] = counts.get(owner, 0) + 1
    holders = {one.holder for one in given}
    pods = {one.pod for one in holders}
    found = [
        Disagreement(Kind.USES_NOT_GIVEN, uuid, owner, count)
        for owner, count in sorted(counts.items(), key=_by_name)
        # Of a process of no certain container, the pod's right is its own.
        if owner not in holders and not (owner.container == "" and owner.pod in pods)
    ]
    using = {owner.pod for owner in counts if owner.container == ""}
    found += [
        Disagreement(Kind.GIVEN_IDLE, uuid, holder, 0)
        for holder in sorted(holders, key=lambda one: (one.pod, one.container))
        if holder not in counts and holder.pod not in using
    ]
    if unmapped:
        found.append(Disagreement(Kind.UNMAPPED, uuid, None, unmapped))
    return found


def _by_name(item: tuple[Holder, int]) -> tuple[str, str]:
    return item[0].pod, item[0].container


class GpuAttribution:
    """Says who uses what, look by look: it keeps the sample before of each GPU."""

    def __init__(self) -> None:
        self._before: dict[str, GpuSample] = {}
        self._charged: dict[tuple[Holder, str], tuple[float, int]] = {}

    def take(
        self,
        samples: Mapping[str, GpuSample],
        owners: Mapping[int, Holder | None],
        given: Iterable[Given],
    ) -> GpusUsed:
        """Take in a look.

        Args:
            samples: By UUID.
            owners: See `disagreements`.
            given: All that containers were given.
        """
        by_gpu: dict[str, list[Given]] = {}
        for one in given:
            by_gpu.setdefault(one.uuid, []).append(one)
        uses: dict[tuple[Holder, str], GpuUse] = {}
        differ: list[Disagreement] = []
        now = devices(samples)
        for uuid, sample in sorted(now.items()):
            here = by_gpu.get(uuid, [])
            differ += disagreements(uuid, sample.processes, owners, here)
            found = self._of_gpu(uuid, sample, owners, here)
            uses |= {(holder, uuid): use for holder, use in found.items()}
        self._before = now
        # What was given on a GPU that does not answer is kept: its counter goes on.
        kept = {(one.holder, one.uuid) for ones in by_gpu.values() for one in ones}
        self._charged = {key: mark for key, mark in self._charged.items() if key in kept}
        return GpusUsed(uses, tuple(differ))

    def _of_gpu(
        self,
        uuid: str,
        sample: GpuSample,
        owners: Mapping[int, Holder | None],
        given: list[Given],
    ) -> dict[Holder, GpuUse]:
        mine: dict[Holder, list[ProcessSample]] = {one.holder: [] for one in given}
        others: list[ProcessSample] = []
        for process in sample.processes:
            owner = owners.get(process.pid)
            if owner is None:
                others.append(process)
            else:
                mine.setdefault(owner, []).append(process)
        charged = self._charge(uuid, sample.at, given)
        utils = share_out(sample.util, mine, others, charged)
        copies = share_copies(sample.memory_copy, mine, others)
        before = self._before.get(uuid)
        joules, parts = energy(before, sample), parts_of_energy(utils, given)
        is_alone = len({holder.pod for holder in mine}) == 1 and not others
        links = link_rates(before, sample) if is_alone else {}
        found: dict[Holder, GpuUse] = {}
        for holder, processes in mine.items():
            memory = [p.memory_bytes for p in processes]
            part = parts.get(holder)
            found[holder] = GpuUse(
                util=utils.get(holder),
                memory_copy=copies.get(holder),
                memory_bytes=None if None in memory else sum(m for m in memory if m is not None),
                power_w=None if part is None or sample.power_w is None else part * sample.power_w,
                energy_j=None if part is None or joules is None else part * joules,
                links=links,
            )
            links = {}  # of several containers of the pod, the first has them all
        return found

    def _charge(self, uuid: str, now: float, given: list[Given]) -> dict[Holder, float | None]:
        """Return the percent of the GPU's time that were charged, of those whose time is."""
        found: dict[Holder, float | None] = {}
        for one in given:
            if one.charged_ns is None:
                continue
            key = one.holder, uuid
            then, before = self._charged.get(key, (now, one.charged_ns))
            self._charged[key] = now, one.charged_ns
            if now <= then or one.charged_ns < before:
                found[one.holder] = None  # the first look, or the server began anew
            else:
                found[one.holder] = (one.charged_ns - before) / 1e7 / (now - then)
        return found


def share_out(
    util: float | None,
    mine: Mapping[Holder, list[ProcessSample]],
    others: Iterable[ProcessSample] = (),
    charged: Mapping[Holder, float | None] = {},
) -> dict[Holder, float]:
    """Return each holder's percent of a GPU's time; their sum is never above 100.

    Exact is what was charged; else what the driver says of processes; else, where one has the GPU
    alone, what it says of the GPU. What cannot be known is absent.

    Args:
        util: Of the GPU.
        mine: Holder → its processes, if it has any.
        others: Processes of nobody.
        charged: Percent, of those whose time is charged; None: of this time it is not known.
    """
    rest = list(others)
    every = [process for processes in mine.values() for process in processes] + rest
    # None at all is a measurement, too: nobody computes.
    is_measured = not every or any(process.sm is not None for process in every)
    found: dict[Holder, float] = {}
    for holder, processes in mine.items():
        exact = charged.get(holder)
        if holder in charged and exact is None and not is_measured:
            continue
        if exact is not None:
            found[holder] = exact
        elif is_measured:
            found[holder] = sum(process.sm or 0.0 for process in processes)
        elif util is not None and (util == 0 or (len(mine) == 1 and not rest)):
            found[holder] = util
    total = sum(found.values()) + sum(process.sm or 0.0 for process in rest)
    scale = _FULL / total if total > _FULL else 1.0
    return {holder: value * scale for holder, value in found.items()}


def share_copies(
    memory_copy: float | None,
    mine: Mapping[Holder, list[ProcessSample]],
    others: Iterable[ProcessSample] = (),
) -> dict[Holder, float]:
    """Return each holder's percent of the time in which memory was read or written; see above."""
    asked = {
        holder: [ProcessSample(p.pid, sm=p.memory_copy) for p in processes]
        for holder, processes in mine.items()
    }
    return share_out(memory_copy, asked, [ProcessSample(p.pid, sm=p.memory_copy) for p in others])


def parts_of_energy(utils: Mapping[Holder, float], given: list[Given]) -> dict[Holder, float]:
    """Return each holder's part of a GPU's energy, 0 to 1: by use; of an idle GPU, alike.

    An idle GPU takes energy for those who hold it, so that nobody else may.
    """
    total = sum(utils.values())
    if total > 0:
        return {holder: util / total for holder, util in utils.items()}
    holders = {one.holder for one in given}
    return dict.fromkeys(holders, 1 / len(holders)) if holders else {}


def gpu_figures(uses: Iterable[GpuUse]) -> Figures:
    """Return a container's figures over its GPUs: percentages as means, all else as sums."""
    found: Figures = {}
    ones = list(uses)
    for metric, values in (
        (usage.GPU_UTIL, [one.util for one in ones]),
        (usage.GPU_MEMORY_COPY_UTIL, [one.memory_copy for one in ones]),
    ):
        known = [value for value in values if value is not None]
        # One of several unknown is all unknown: the mean of the rest says something else.
        if known and len(known) == len(values):
            found[metric] = sum(known) / len(known)
    memory = [one.memory_bytes for one in ones if one.memory_bytes is not None]
    if memory and len(memory) == len(ones):
        found[usage.GPU_MEMORY_MIB] = sum(memory) / (1 << 20)
    power = [one.power_w for one in ones if one.power_w is not None]
    if power and len(power) == len(ones):
        found[usage.POWER_W] = sum(power)
    for one in ones:
        for metric, value in one.links.items():
            found[metric] = found.get(metric, 0.0) + value
    return found
