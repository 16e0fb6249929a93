"""Tier D: which containers use more of a GPU than is theirs, and what follows.

The driver's own figures, once a second, are held against the limits. What looks wrong is a
suspicion first and a violation when it stays: a process that just ended, a number that was reused,
a sample that was taken in the middle of something must not cost anybody a pod. Facts need less of
that than figures: who has no slot, or has a driver's library of its own mapped, has it in the first
second of a container too, and no time makes it clearer than a second look. From the beginning of
such a bypass to the action it is at most 1 + 2 s, which leaves two seconds of five for the request.

What it cannot see: use that the driver itself does not attribute to the processes.
"""

import math
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from alnair.sharing.accounts import ProcessAccount

_MIB: Final = 1 << 20
#: Linux has no more threads than it has pids.
_MOST_THREADS: Final = 1 << 22
#: GPU seconds that no process is charged in a second, whatever its prices: a launch for each of its
#: threads, and each of a quarter of a second.
_MOST_CHARGED: Final = float(1 << 20)
#: Seconds in which a container goes on to use more than its share although it is held down, until
#: it counts as one that nothing holds: an honest kernel cannot be interrupted, but it ends.
_UNMOVED: Final = 30.0


class Kind(StrEnum):
    """What is wrong."""

    #: A process of the container uses the GPU and has no slot: it went round the library.
    UNREGISTERED = "unregistered"
    #: A process that has one uses the GPU beside it: by a driver library of its own, or in a
    #: context that its slot does not know.
    BYPASS = "bypass"
    #: What the pages of its processes say is not what the driver measured.
    FORGED = "forged"
    #: The driver charges more memory to the container than it may use.
    MEMORY = "memory"
    #: Its processes use more GPU time than they were granted.
    COMPUTE = "compute"


class Policy(StrEnum):
    """What follows from a violation; each does what those before it do."""

    WARN = "warn"
    THROTTLE = "throttle"
    EVICT = "evict"


class ViolationRules(msgspec.Struct, frozen=True):
    """When a suspicion arises, and when it is one no more; seconds and bytes.

    Attributes:
        grace: After a container's start no figures are judged: contexts come before they settle.
        confirmed: How long a suspicion must stay.
        confirmed_hidden: The same for processes that hide from the limits. Looks are a second
            apart: between two of their multiples, or now and then it would take a look more.
        confirmed_compute: The same for compute, whose samples are coarse: ten windows of a second.
        interrupted: Two samples further apart say nothing of the time between.
        settled: How long the driver must have listed a process without a slot, and that long after
            it was first listed the server must have looked for slots: it does so twice a second.
        zombie: How long the driver may still list a process that has ended.
        slack: Memory above the limit that is no violation; besides, what a context costs: once for
            what contexts grow by, and for each process whose slot does not have its own yet.
        context: What a context costs where nobody has measured it.
        margin: GPU time above the share that is none: kernels of others lie in the same samples.
        margin_long: The same over minutes, in which such errors come out even,
        excess: and GPU seconds beyond it that are a violation.
        confirmed_forged: How long two accounts must differ.
        judged: Age of a process, before which its accounts are not compared.
        hidden: Part of a limit that may be missing in the ledger: more is not corrected any more.
    """

    grace: float = 5.0
    confirmed: float = 3.0
    confirmed_hidden: float = 1.5
    confirmed_compute: float = 10.0
    interrupted: float = 3.0
    settled: float = 1.0
    zombie: float = 2.0
    slack: int = 64 * _MIB
    context: int = 256 * _MIB
    margin: float = 0.2
    margin_long: float = 0.05
    excess: float = 10.0
    confirmed_forged: float = 30.0
    judged: float = 10.0
    hidden: float = 0.5


class Process(msgspec.Struct, frozen=True):
    """A process of a container, as the driver lists it on one GPU.

    Attributes:
        pid: The host's.
        memory: Bytes that the driver charges to it; None if it does not say.
        registered: Has a slot.
        age: Seconds since it started.
        listed: Seconds for which the driver has listed this number without a break.
        searched: Seconds from its first listing to the last look that told whose each slot is.
        ended: Seconds since it ended, as far as is known; None while it lives.
        beside: Path of a driver library that it has mapped beside ours, or "".
        beside_for: Seconds for which that has been known.
        held: Bytes that its slot says it holds; None without a slot.
        contexts: That its slot says it has; None without a slot.
        waiting: Threads that its slot says wait for GPU time.
        charging: GPU seconds a second that its slot says it was charged since the last look.
        account: Of its GPU time, by its slot and by NVML; None where there is nothing to compare.
    """

    pid: int
    memory: int | None
    registered: bool
    age: float
    listed: float
    ended: float | None = None
    beside: str = ""
    beside_for: float = 0.0
    held: int | None = None
    contexts: int | None = None
    waiting: int = 0
    account: ProcessAccount | None = None
    searched: float = math.inf
    charging: float = 0.0


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
        measured: As `used`, brought down to what the GPU did as a whole; None if not known.
        granted: The part that it was granted lately, at most, borrowed time included; None if it
            has no limit.
        is_in_debt: It lives off what it was not granted (`alnair.sharing.debts`).
        margin: Part by which `measured` may be wrong.
        ledger: Bytes that its slots hold together; None if it has no slice there.
        context: Bytes of a context on this GPU; 0 if nobody has measured it.
    """

    now: float
    since: float
    processes: tuple[Process, ...]
    memory_limit: int = 0
    used: float | None = None
    share: float | None = None
    mps: bool = False
    measured: float | None = None
    granted: float | None = None
    is_in_debt: bool = False
    margin: float = 0.0
    ledger: int | None = None
    context: int = 0


class _Wrong(NamedTuple):
    """What looks wrong: since when it may have been so, and for how long it must stay."""

    kind: Kind
    message: str
    since: float
    span: float
    is_figure: bool = True


class SuspectedViolation(msgspec.Struct, frozen=True):
    """Something that looks wrong since a moment; `message` is the sentence about it."""

    since: float
    message: str
    is_confirmed: bool = False


class Case(msgspec.Struct, frozen=True):
    """What is held against one container on one GPU.

    Attributes:
        last: When it was looked at.
        excess: GPU seconds beyond its grants.
        suspicions: What looks wrong.
        unmoved: Seconds for which it went on after a violation of compute had been confirmed.
    """

    last: float = float("-inf")
    excess: float = 0.0
    suspicions: Mapping[Kind, SuspectedViolation] = {}
    unmoved: float = 0.0

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
    is_early = seen.now - seen.since < rules.grace
    is_gap = seen.now - before.last > rules.interrupted
    excess = 0.0 if is_early else before.excess if is_gap else _excess(before, seen, rules)
    suspicions: dict[Kind, SuspectedViolation] = {}
    for kind, message, since, span, is_figure in _wrong(seen, excess, rules):
        if is_early and is_figure:
            continue
        old = before.suspicions.get(kind)
        if old is not None and old.is_confirmed:
            suspicions[kind] = old  # its sentence stays: one event, not one a second
            continue
        if is_gap:
            since = seen.now
        elif old is not None:
            since = min(since, old.since)
        # Of two reasons for the same, the first one that is confirmed is told.
        if kind not in suspicions or not suspicions[kind].is_confirmed:
            suspicions[kind] = SuspectedViolation(since, message, seen.now - since >= span)
    is_unmoved = (
        not is_gap and Kind.COMPUTE in before.violations and (seen.used or 0) > rules.margin
    )
    unmoved = before.unmoved + seen.now - before.last if is_unmoved else 0.0
    return Case(seen.now, excess, suspicions, unmoved)


def _excess(before: Case, seen: Observation, rules: ViolationRules) -> float:
    """GPU seconds beyond the grants, less what was left of them."""
    if seen.measured is None or seen.granted is None or seen.mps:
        return before.excess
    beyond = seen.measured - seen.granted - rules.margin_long - seen.margin
    # No more than twice what is a violation: it must end when the excess does.
    return min(2 * rules.excess, max(0.0, before.excess + beyond * (seen.now - before.last)))


def respond(policy: Policy, before: Case, after: Case) -> list[Action]:
    """Return what follows from the difference.

    GPU time can be paid back, and a kernel that takes long is nobody's fault: who uses too much of
    it is held down, and evicted only if that changes nothing.
    """
    old, new = before.violations, after.violations
    actions: list[Action] = [Cleared(kind) for kind in old if kind not in new]
    fresh = [SliceViolation(kind, message) for kind, message in new.items() if kind not in old]
    actions += fresh
    if policy is not Policy.WARN and bool(old) != bool(new):
        actions.append(Throttle(bool(new)))
    messages = [violation.message for violation in fresh if violation.kind is not Kind.COMPUTE]
    if Kind.COMPUTE in new and before.unmoved < _UNMOVED <= after.unmoved:
        messages.append(f"{new[Kind.COMPUTE]}, and goes on though it is held down")
    if policy is Policy.EVICT and messages:
        actions.append(EvictTenant("; ".join(messages)))
    return actions


def _wrong(seen: Observation, excess: float, rules: ViolationRules) -> Iterator[_Wrong]:
    """Yield what looks wrong at this moment."""
    alive = [process for process in seen.processes if counts(process, rules)]
    strangers = [p for p in alive if not p.registered and _has_no_slot(p, rules)]
    if strangers:
        shown = ", ".join(str(process.pid) for process in strangers[:5])
        message = f"{len(strangers)} process(es) use the GPU past the limits (host pid {shown})"
        since = seen.now - max(process.listed for process in strangers)
        yield _Wrong(Kind.UNREGISTERED, message, since, rules.confirmed_hidden, is_figure=False)
    yield from _beside(seen, alive, rules)
    yield from _forged(seen, alive, excess, rules)
    held = sum(process.memory or 0 for process in alive)
    context = seen.context or rules.context
    # Its own context is held against nobody; the ledger has it, or will have it in a moment.
    unreckoned = sum(max(0, context - (process.held or 0)) for process in alive)
    allowed = seen.memory_limit + rules.slack + context + unreckoned
    if seen.memory_limit and held > allowed and not seen.mps:
        limit = seen.memory_limit // _MIB
        message = f"it holds {held // _MIB} MiB of GPU memory, its limit is {limit} MiB"
        yield _Wrong(Kind.MEMORY, message, seen.now, rules.confirmed)
    if excess >= rules.excess:
        message = f"it used {excess:.0f} s of GPU time more than it was granted"
        yield _Wrong(Kind.COMPUTE, message, seen.now, 0.0)
    elif _is_above(seen, rules):
        message = f"it uses {seen.used:.0%} of the GPU's time, its share is {seen.share:.0%}"
        yield _Wrong(Kind.COMPUTE, message, seen.now, rules.confirmed_compute)


def _has_no_slot(process: Process, rules: ViolationRules) -> bool:
    """Tell whether it would be known by now if it had one.

    Who keeps the server from telling whose the slots are is waited for a little longer, not for
    ever.
    """
    if process.listed < rules.settled:
        return False
    return process.searched >= rules.settled or process.listed >= rules.settled + rules.confirmed


def _is_above(seen: Observation, rules: ViolationRules) -> bool:
    if seen.used is None or seen.share is None or seen.mps:
        return False
    return seen.used > seen.share + rules.margin


def _beside(seen: Observation, alive: list[Process], rules: ViolationRules) -> Iterator[_Wrong]:
    """Yield what registered processes do beside the library."""
    evading = [process for process in alive if process.registered and process.beside]
    if evading:
        first = evading[0]
        message = f"host pid {first.pid} uses {first.beside} beside the library that limits it"
        since = seen.now - max(process.beside_for for process in evading)
        yield _Wrong(Kind.BYPASS, message, since, rules.confirmed_hidden, is_figure=False)
        return
    for process in alive:
        # What it holds by its slot may be of a context that just ended.
        is_settled = process.registered and process.listed >= rules.settled and not seen.mps
        is_unknown = process.contexts == 0 and seen.context and not process.held
        if is_settled and is_unknown and (process.memory or 0) >= seen.context // 2:
            message = f"host pid {process.pid} has a context that its library does not know"
            yield _Wrong(Kind.BYPASS, message, seen.now, rules.confirmed)
            return


def _forged(
    seen: Observation, alive: list[Process], excess: float, rules: ViolationRules
) -> Iterator[_Wrong]:
    """Yield where what the pages say cannot be, or is not what the driver says."""
    for process in alive:
        # No account is needed to know these for lies, and no time makes them truer.
        if process.waiting > _MOST_THREADS:
            message = f"the page of host pid {process.pid} has {process.waiting} waiting threads"
            yield _Wrong(Kind.FORGED, message, seen.now, 0.0, is_figure=False)
        if process.charging > _MOST_CHARGED:
            message = (
                f"the page of host pid {process.pid} says that it was charged "
                f"{process.charging:.0f} s of GPU time in a second"
            )
            yield _Wrong(Kind.FORGED, message, seen.now, 0.0, is_figure=False)
    if seen.mps:
        return
    for process in alive:
        account = process.account
        if account is None or not process.registered or process.age < rules.judged:
            continue
        # Of a kernel that never ends the library cannot know: it wrongs nobody within a grant.
        is_under = account.is_undercharged and (seen.is_in_debt or excess > 0)
        if account.is_overcharged or is_under:
            message = (
                f"the page of host pid {process.pid} says that it was charged "
                f"{account.charged:.0f} s of GPU time lately, the driver measured "
                f"{account.used:.0f} s"
            )
            yield _Wrong(Kind.FORGED, message, seen.now, rules.confirmed_forged)
    held = sum(process.memory or 0 for process in alive)
    if seen.ledger is None or not seen.memory_limit:
        return
    context = seen.context or rules.context
    hidden = held - seen.ledger - context * len(alive)
    if hidden > seen.memory_limit * rules.hidden:
        message = (
            f"its pages say {seen.ledger // _MIB} MiB of GPU memory, the driver {held // _MIB} MiB"
        )
        yield _Wrong(Kind.FORGED, message, seen.now, rules.confirmed_forged)


def counts(process: Process, rules: ViolationRules) -> bool:
    """Tell whether what the driver lists is this process, and alive."""
    if process.ended is not None and process.ended <= rules.zombie:
        return False
    # The driver listed the number before the process was born: it lists one that is gone.
    return process.listed <= process.age + 1.0
