"""Tier D: which containers use more of a GPU than is theirs, and what follows.

The driver's own figures, once a second, are held against the limits. What looks wrong is a
suspicion first and a violation when it stays: a process that just ended, a number that was reused,
a sample that was taken in the middle of something must not cost anybody a pod. From the beginning
of a bypass to the action it is at most 1 + 3 s, which leaves a second of five for the request.

What it cannot see: use that the driver itself does not attribute to the processes.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

import msgspec

_MIB: Final = 1 << 20


class Kind(StrEnum):
    """What is wrong."""

    #: A process of the container uses the GPU and has no slot: it went round the library.
    UNREGISTERED = "unregistered"
    #: A process that has one has a driver library of its own beside ours.
    BYPASS = "bypass"
    #: The driver charges more memory to the container than it may use.
    MEMORY = "memory"
    #: Its processes use more GPU time than a hard share allows.
    COMPUTE = "compute"


class Policy(StrEnum):
    """What follows from a violation; each does what those before it do."""

    WARN = "warn"
    THROTTLE = "throttle"
    EVICT = "evict"


class ViolationRules(msgspec.Struct, frozen=True):
    """When a suspicion arises, and when it is one no more; seconds and bytes.

    Attributes:
        grace: After a container's start nothing is judged: contexts come before figures settle.
        confirmed: How long a suspicion must stay.
        confirmed_compute: The same for compute, whose samples are coarse: ten windows of a second.
        interrupted: Two samples further apart say nothing of the time between.
        settled: How long the driver must have listed a process without a slot: the server looks for
            new slots twice a second.
        zombie: How long the driver may still list a process that has ended.
        slack: Memory above the limit that is no violation,
        slack_per_process: and per process, for what its context costs beyond what was reckoned.
        margin: GPU time above the share that is none: kernels of others lie in the same samples.
    """

    grace: float = 5.0
    confirmed: float = 3.0
    confirmed_compute: float = 10.0
    interrupted: float = 3.0
    settled: float = 1.0
    zombie: float = 2.0
    slack: int = 64 * _MIB
    slack_per_process: int = 256 * _MIB
    margin: float = 0.2


class Process(msgspec.Struct, frozen=True):
    """A process of a container, as the driver lists it on one GPU.

    Attributes:
        pid: The host's.
        memory: Bytes that the driver charges to it; None if it does not say.
        registered: Has a slot.
        age: Seconds since it started.
        listed: Seconds for which the driver has listed this number without a break.
        ended: Seconds since it ended, as far as is known; None while it lives.
        beside: Path of a driver library that it has mapped beside ours, or "".
        beside_for: Seconds for which that has been known.
    """

    pid: int
    memory: int | None
    registered: bool
    age: float
    listed: float
    ended: float | None = None
    beside: str = ""
    beside_for: float = 0.0


class Observation(msgspec.Struct, frozen=True):
    """One container on one GPU, at one moment.

    Attributes:
        now: Monotonic seconds.
        since: When the container started.
        processes: Those that the driver lists.
        memory_limit: Bytes; 0 is none.
        used: Part of the GPU's time that its processes used since the sample before; None if the
            driver does not say.
        share: The part that it may use; None if it is soft or has no limit.
        mps: Several processes share a server, to which older drivers charge their memory.
    """

    now: float
    since: float
    processes: tuple[Process, ...]
    memory_limit: int = 0
    used: float | None = None
    share: float | None = None
    mps: bool = False


class SuspectedViolation(msgspec.Struct, frozen=True):
    """Something that looks wrong since a moment; `message` is the sentence about it."""

    since: float
    message: str
    is_confirmed: bool = False


class Case(msgspec.Struct, frozen=True):
    """What is held against one container on one GPU."""

    last: float = float("-inf")
    suspicions: Mapping[Kind, SuspectedViolation] = {}

    @property
    def violations(self) -> dict[Kind, str]:
        """What is confirmed, with the sentence about it."""
        return {kind: s.message for kind, s in self.suspicions.items() if s.is_confirmed}


class SliceViolation(msgspec.Struct, frozen=True):
    """A violation begins: report it."""

    kind: Kind
    message: str


class Cleared(msgspec.Struct, frozen=True):
    """A violation has ended: report it."""

    kind: Kind


class Throttle(msgspec.Struct, frozen=True):
    """Hold the container's compute down, or no more."""

    on: bool


class EvictTenant(msgspec.Struct, frozen=True):
    """Ask for the pod's eviction."""

    message: str


Action = SliceViolation | Cleared | Throttle | EvictTenant


def judge(before: Case, seen: Observation, rules: ViolationRules = ViolationRules()) -> Case:  # noqa: B008 (frozen)
    """Return what is held against a container after one more look."""
    if seen.now - seen.since < rules.grace:
        return Case(seen.now)
    is_gap = seen.now - before.last > rules.interrupted
    suspicions = {}
    for kind, message, since in _wrong(seen, rules):
        old = before.suspicions.get(kind)
        if old is not None and old.is_confirmed:
            suspicions[kind] = old  # its sentence stays: one event, not one a second
            continue
        if is_gap:
            since = seen.now
        elif old is not None:
            since = min(since, old.since)
        needed = rules.confirmed_compute if kind is Kind.COMPUTE else rules.confirmed
        suspicions[kind] = SuspectedViolation(since, message, seen.now - since >= needed)
    return Case(seen.now, suspicions)


def respond(policy: Policy, before: Case, after: Case) -> list[Action]:
    """Return what follows from the difference."""
    old, new = before.violations, after.violations
    actions: list[Action] = [Cleared(kind) for kind in old if kind not in new]
    fresh = [SliceViolation(kind, message) for kind, message in new.items() if kind not in old]
    actions += fresh
    if policy is not Policy.WARN and bool(old) != bool(new):
        actions.append(Throttle(bool(new)))
    if policy is Policy.EVICT and fresh:
        actions.append(EvictTenant("; ".join(violation.message for violation in fresh)))
    return actions


def _wrong(seen: Observation, rules: ViolationRules) -> Iterator[tuple[Kind, str, float]]:
    """Yield what looks wrong at this moment, and since when it may have been so."""
    alive = [process for process in seen.processes if counts(process, rules)]
    strangers = [p for p in alive if not p.registered and p.listed >= rules.settled]
    if strangers:
        shown = ", ".join(str(process.pid) for process in strangers[:5])
        message = f"{len(strangers)} process(es) use the GPU past the limits (host pid {shown})"
        yield Kind.UNREGISTERED, message, seen.now - max(process.listed for process in strangers)
    evading = [process for process in alive if process.registered and process.beside]
    if evading:
        first = evading[0]
        message = f"host pid {first.pid} uses {first.beside} beside the library that limits it"
        yield Kind.BYPASS, message, seen.now - max(process.beside_for for process in evading)
    held = sum(process.memory or 0 for process in alive)
    allowed = seen.memory_limit + rules.slack + rules.slack_per_process * len(alive)
    if seen.memory_limit and held > allowed and not seen.mps:
        limit = seen.memory_limit // _MIB
        message = f"it holds {held // _MIB} MiB of GPU memory, its limit is {limit} MiB"
        yield Kind.MEMORY, message, seen.now
    if seen.used is None or seen.share is None or seen.mps:
        return
    if seen.used > seen.share + rules.margin:
        message = f"it uses {seen.used:.0%} of the GPU's time, its share is {seen.share:.0%}"
        yield Kind.COMPUTE, message, seen.now


def counts(process: Process, rules: ViolationRules) -> bool:
    """Tell whether what the driver lists is this process, and alive."""
    if process.ended is not None and process.ended <= rules.zombie:
        return False
    # The driver listed the number before the process was born: it lists one that is gone.
    return process.listed <= process.age + 1.0
