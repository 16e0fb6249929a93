"""Tier D: what is a violation, what only looks like one, and what follows."""

import random
from collections.abc import Iterator

import msgspec
import pytest

from alnair.sharing.accounts import ProcessAccount
from alnair.sharing.violations import (
    Action,
    Case,
    Cleared,
    EvictTenant,
    Kind,
    Observation,
    Policy,
    Process,
    SliceViolation,
    Throttle,
    judge,
    respond,
)

MIB = 1 << 20
GIB = 1 << 30
HONEST = Process(pid=7, memory=GIB, registered=True, age=100.0, listed=90.0)
STRANGER = Process(pid=8, memory=GIB, registered=False, age=100.0, listed=1.0)
EVADER = msgspec.structs.replace(HONEST, beside="/tmp/libcuda.so.1", beside_for=1.0)
FINE = Observation(
    now=100.0, since=0.0, processes=(HONEST,), memory_limit=2 * GIB, used=0.5, share=0.5
)


def at(seconds: float, seen: Observation = FINE, **fields: object) -> Observation:
    """A look so many seconds after the first."""
    return msgspec.structs.replace(seen, now=100.0 + seconds, **fields)


def after(*looks: Observation) -> Case:
    """What is held against it after these looks, and one before at which all was well."""
    case = judge(Case(), at(-1))
    for seen in looks:
        case = judge(case, seen)
    return case


def many(count: int, seen: Observation = FINE, **fields: object) -> Iterator[Observation]:
    """Looks a second apart."""
    return (at(second, seen, **fields) for second in range(count))


def test_who_keeps_to_its_slice_is_held_against_nothing() -> None:
    assert after(*many(60)).suspicions == {}


@pytest.mark.parametrize(
    ("fields", "kind", "seconds"),
    [
        ({"processes": (HONEST, STRANGER)}, Kind.UNREGISTERED, 1),
        ({"processes": (EVADER,)}, Kind.BYPASS, 1),
        ({"processes": (msgspec.structs.replace(HONEST, memory=4 * GIB),)}, Kind.MEMORY, 3),
        ({"used": 0.75}, Kind.COMPUTE, 10),
    ],
)
def test_what_stays_wrong_is_a_violation_and_not_before(
    fields: dict[str, object], kind: Kind, seconds: int
) -> None:
    assert after(*many(seconds, **fields)).violations == {}
    assert list(after(*many(seconds + 1, **fields)).violations) == [kind]


CONTEXT = 400 * MIB
CLAIMS = msgspec.structs.replace(HONEST, account=ProcessAccount(15.0, 0.5))
HIDES = msgspec.structs.replace(HONEST, account=ProcessAccount(0.5, 15.0))


@pytest.mark.parametrize(
    ("fields", "kind", "seconds"),
    [
        ({"processes": (CLAIMS,)}, Kind.FORGED, 30),
        ({"processes": (HIDES,), "is_in_debt": True}, Kind.FORGED, 30),
        (
            {
                "processes": (msgspec.structs.replace(HONEST, memory=2 * GIB),),
                "ledger": 0,
                "context": CONTEXT,
            },
            Kind.FORGED,
            30,
        ),
        (
            {
                "processes": (msgspec.structs.replace(HONEST, contexts=0, held=0),),
                "context": CONTEXT,
            },
            Kind.BYPASS,
            3,
        ),
        (
            {
                "processes": (msgspec.structs.replace(HONEST, memory=2600 * MIB, held=2 * GIB),),
                "context": CONTEXT,
            },
            Kind.MEMORY,
            3,
        ),
        ({"measured": 0.7, "granted": 0.5, "share": None}, Kind.COMPUTE, 66),
    ],
    ids=["claims", "hides time", "hides bytes", "unknown context", "memory", "soft, little"],
)
def test_what_the_driver_belies_is_a_violation(
    fields: dict[str, object], kind: Kind, seconds: int
) -> None:
    assert kind not in after(*many(seconds, **fields)).violations
    assert list(after(*many(seconds + 2, **fields)).violations) == [kind]


IMPOSSIBLE = {
    "more threads than Linux has": msgspec.structs.replace(HONEST, waiting=(1 << 22) + 1),
    "twelve days a second": msgspec.structs.replace(HONEST, charging=(1 << 20) + 1.0),
}


@pytest.mark.parametrize("liar", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
@pytest.mark.parametrize("fields", [{}, {"since": 100.0}, {"mps": True}], ids=["", "new", "MPS"])
def test_what_cannot_be_is_a_lie_at_first_look(liar: Process, fields: dict[str, object]) -> None:
    (lie,) = after(at(0, processes=(liar,), **fields)).violations.items()
    assert lie[0] is Kind.FORGED
    assert lie[1].startswith("the page of host pid 7 ")
    first = judge(Case(), at(0, processes=(liar,), **fields))
    assert EvictTenant(lie[1]) in respond(Policy.EVICT, Case(), first)


def test_an_excess_ends_when_it_was_made_up_for() -> None:
    case = after(*many(200, measured=1.0, granted=0.5, share=None))
    assert list(case.violations) == [Kind.COMPUTE]
    for second in range(200, 250):
        case = judge(case, at(second, measured=0.2, granted=0.5, share=None))
    assert not case.suspicions


NO_VIOLATION = {
    "as many threads as Linux has, charged as much as they can be": {
        "processes": (
            msgspec.structs.replace(HONEST, waiting=1 << 22, charging=float(1 << 20), age=5.0),
        )
    },
    "a page just read of a process that just started": {
        "processes": (msgspec.structs.replace(CLAIMS, age=9.0, listed=8.0),)
    },
    "a kernel that never ends, within what was granted": {"processes": (HIDES,)},
    "four streams that overlap": {
        "processes": (msgspec.structs.replace(HONEST, account=ProcessAccount(20.0, 5.0)),)
    },
    "a forged account under MPS, of which the driver knows nothing": {
        "processes": (CLAIMS, HIDES),
        "mps": True,
        "is_in_debt": True,
    },
    "figures that add up to two GPUs": {
        "measured": 0.7,
        "granted": 0.5,
        "margin": 0.25,
    },
    "a context that its slot will have in a moment": {
        "processes": (msgspec.structs.replace(HONEST, contexts=0, held=0, listed=0.5),),
        "context": CONTEXT,
    },
    "contexts that grew by what one costs": {
        "processes": (msgspec.structs.replace(HONEST, memory=2440 * MIB, held=2 * GIB),),
        "context": CONTEXT,
    },
    "memory that the pages have and the driver does not: managed": {
        "processes": (msgspec.structs.replace(HONEST, memory=CONTEXT, held=2 * GIB),),
        "ledger": 2 * GIB,
        "context": CONTEXT,
    },
    "a context that costs more than was reckoned": {
        "processes": (msgspec.structs.replace(HONEST, memory=2 * GIB + 300 * MIB),)
    },
    "no limit": {
        "processes": (msgspec.structs.replace(HONEST, memory=64 * GIB),),
        "memory_limit": 0,
    },
    "memory that the driver does not tell": {
        "processes": (msgspec.structs.replace(HONEST, memory=None),)
    },
    "a share measured a little above": {"used": 0.69},
    "a soft share": {"used": 1.0, "share": None},
    "nothing measured": {"used": None},
    "an MPS server's memory and time": {
        "processes": (msgspec.structs.replace(HONEST, memory=64 * GIB),),
        "used": 1.0,
        "mps": True,
    },
    "memory of a process that has just ended": {
        "processes": (msgspec.structs.replace(STRANGER, ended=1.9),)
    },
    "a number that the driver lists of a process before": {
        "processes": (msgspec.structs.replace(STRANGER, age=3.0, listed=9.0),)
    },
    "a process whose slot the server has not seen yet": {
        "processes": (msgspec.structs.replace(STRANGER, listed=0.9),)
    },
    "a process whose slot the server has not looked for since": {
        "processes": (msgspec.structs.replace(STRANGER, listed=3.9, searched=0.9),)
    },
    "figures of a container that has just started": {
        "processes": (msgspec.structs.replace(HONEST, memory=4 * GIB),),
        "used": 1.0,
        "measured": 1.0,
        "granted": 0.1,
        "since": 96.0 + 20,
    },
}


@pytest.mark.parametrize("fields", NO_VIOLATION.values(), ids=NO_VIOLATION)
def test_what_only_looks_wrong_is_none(fields: dict[str, object]) -> None:
    assert after(*many(20, **fields)).violations == {}


def test_a_zombie_that_stays_listed_is_judged_at_last() -> None:
    zombie = msgspec.structs.replace(STRANGER, ended=2.1)
    assert Kind.UNREGISTERED in after(*many(5, processes=(zombie,))).violations


def test_a_suspicion_does_not_outlive_a_look_without_it() -> None:
    bad = {"processes": (STRANGER,)}
    looks = at(0, **bad), at(0.4, **bad), at(0.5), at(0.6, **bad), at(1, **bad)
    assert after(*looks).violations == {}
    assert after(*looks[:2], *looks[3:]).violations


def test_two_looks_far_apart_say_nothing_of_the_time_between() -> None:
    bad = {"processes": (STRANGER,)}
    assert after(at(0, **bad), at(60, **bad), at(61, **bad)).violations == {}
    assert after(at(0, **bad), at(60, **bad), at(61, **bad), at(62, **bad)).violations


@pytest.mark.parametrize("early", [-0.02, 0.0, 0.02])
def test_who_hides_from_a_containers_first_moment_on_is_found_at_the_third_look(
    early: float,
) -> None:
    """Also where looks come a little early, or late."""
    stranger, case = Case(), Case()
    for second in range(3):
        now = second + early * (second == 2)
        hidden = msgspec.structs.replace(STRANGER, age=now, listed=now, searched=now)
        stranger = judge(stranger, at(now, processes=(hidden,), since=100.0))
        beside = msgspec.structs.replace(EVADER, age=now, listed=now, beside_for=max(0.0, now - 1))
        case = judge(case, at(now, processes=(beside,), since=100.0))
        assert bool(stranger.violations) is (second == 2)
    assert list(stranger.violations) == [Kind.UNREGISTERED]
    case = judge(case, at(3, processes=(msgspec.structs.replace(beside, beside_for=2.0),)))
    assert list(case.violations) == [Kind.BYPASS]


def test_who_keeps_the_server_from_telling_its_slots_apart_is_found_a_little_later() -> None:
    case = Case()
    for second in range(5):
        listed = float(second)
        hidden = msgspec.structs.replace(STRANGER, age=listed, listed=listed, searched=-9.0)
        case = judge(case, at(second, processes=(hidden,), since=100.0))
        assert bool(case.violations) is (second == 4)


def test_each_policy_does_what_those_before_it_do() -> None:
    before = Case()
    now = after(*many(4, processes=(STRANGER,)))
    (message,) = now.violations.values()
    violation = SliceViolation(Kind.UNREGISTERED, message)
    assert respond(Policy.WARN, before, now) == [violation]
    assert respond(Policy.THROTTLE, before, now) == [violation, Throttle(True)]
    assert respond(Policy.EVICT, before, now) == [violation, Throttle(True), EvictTenant(message)]
    assert respond(Policy.EVICT, now, judge(now, at(4, processes=(STRANGER,)))) == []
    cleared = [Cleared(Kind.UNREGISTERED)]
    assert respond(Policy.WARN, now, before) == cleared
    assert respond(Policy.EVICT, now, before) == [*cleared, Throttle(False)]


def said_of(seconds: int, **fields: object) -> tuple[Case, list[tuple[int, Action]]]:
    """What a policy of evictions does in these seconds, and when."""
    case, said = Case(), []
    for second in range(seconds):
        following = judge(case, at(second, **fields))
        said += [(second, action) for action in respond(Policy.EVICT, case, following)]
        case = following
    return case, said


def test_a_kernel_that_takes_long_costs_nobody_its_pod() -> None:
    case, said = said_of(25, used=1.0, measured=1.0, granted=0.25, share=0.25)
    assert [type(action) for _, action in said] == [SliceViolation, Throttle]
    for second in range(25, 400):  # it has ended, and what it took beyond its share is paid back
        following = judge(case, at(second, used=0.01, measured=0.01, granted=0.25, share=0.25))
        said += [(second, action) for action in respond(Policy.EVICT, case, following)]
        case = following
    assert [action for _, action in said[2:]] == [Cleared(Kind.COMPUTE), Throttle(False)]


def test_who_uses_too_much_time_though_it_is_held_down_is_evicted() -> None:
    _, said = said_of(60, used=0.75)
    assert [type(action) for _, action in said] == [SliceViolation, Throttle, EvictTenant]
    assert [second for second, _ in said] == [10, 10, 40]
    assert said[2][1].message.endswith("and goes on though it is held down")  # type: ignore[union-attr]


def test_a_bypass_is_answered_within_five_seconds_of_its_first_moment() -> None:
    for offset in (0.0, 0.3, 0.999):
        case, began = Case(), 100.0 + offset
        first = 100.0 + (offset > 0)  # the first look at which the driver lists it
        for second in range(10):
            now = 100.0 + second
            bad = msgspec.structs.replace(STRANGER, listed=now - first)
            seen = at(second, processes=(HONEST, bad) if now >= began else (HONEST,))
            following = judge(case, seen)
            if any(isinstance(a, EvictTenant) for a in respond(Policy.EVICT, case, following)):
                assert now - began <= 3.0
                break
            case = following
        else:
            raise AssertionError("never")


def test_nobody_honest_is_accused_in_a_day_of_coming_and_going() -> None:
    """A virtual day: processes start, end, linger in the driver's list and give numbers on."""
    chance = random.Random(11)
    case, alive, listed = Case(), dict[int, float](), dict[int, float]()
    ended = dict[int, float]()
    accused = 0
    for second in range(86_400):
        now = float(second)
        if chance.random() < 0.2 and len(alive) < 8:
            alive[chance.randrange(40)] = now - chance.random()  # numbers are used again
        for pid in [pid for pid in alive if chance.random() < 0.05]:
            del alive[pid]
            ended[pid] = now
        # The driver lists who lives, and who ended up to two seconds ago.
        shown = {*alive, *(pid for pid, end in ended.items() if now - end < 2)}
        listed = {pid: listed.get(pid, now) for pid in shown}
        processes = tuple(
            Process(
                pid,
                int(chance.random() * GIB / 6),
                # Half a second passes before the server has seen a slot.
                registered=pid in alive and now - alive[pid] >= 0.5,
                age=now - alive.get(pid, now - 50),
                listed=now - listed[pid],
                ended=None if pid in alive else now - ended[pid],
            )
            for pid in sorted(shown)
        )
        seen = Observation(
            now,
            0.0,
            processes,
            memory_limit=2 * GIB,
            used=chance.random() * 0.65,
            share=0.5,
        )
        following = judge(case, seen)
        accused += len(respond(Policy.EVICT, case, following))
        case = following
    assert accused == 0
