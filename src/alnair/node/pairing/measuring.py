"""Rates of workloads that run at the same time, and of a pair alone and together."""

import contextlib
import selectors
import time
from collections.abc import Callable, Sequence

import msgspec

from alnair.model.plurals import counted
from alnair.node.pairing.workload import Command, RunError, Workload
from alnair.profiler.pair_speeds import Round

#: Seen steps that a rate needs: fewer, and one more or less would be a fifth of it.
ENOUGH = 5
#: Who shows fewer is measured longer, so many times at most.
LONGER = 4


class Times(msgspec.Struct, frozen=True):
    """Seconds.

    Attributes:
        warm_up: After the first steps of all, which do not count.
        measured: That count; more where steps are so long that few are seen.
        patience: For the first step.
    """

    warm_up: float = 10.0
    measured: float = 30.0
    patience: float = 300.0


#: Runs workloads at the same time, and returns the steps per second of each.
Measure = Callable[[Sequence[Command], Times], tuple[float, ...]]


def rates(commands: Sequence[Command], times: Times) -> tuple[float, ...]:
    """Run workloads at the same time; return the steps per second of each, over the same seconds.

    Raises:
        RunError: One does not start, ends early, or shows no steps.
    """
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        running = [stack.enter_context(Workload(command)) for command in commands]
        for one in running:
            selector.register(one, selectors.EVENT_READ, one)
        begin = time.monotonic()
        _until(selector, begin + times.patience, lambda: all(one.seen for one in running))
        silent = [one.name for one in running if not one.seen]
        if silent:
            raise RunError(
                f"{silent[0]} has shown no step in {times.patience:g} s: say with --pattern how"
                " its output counts them, and see that it is not buffered"
            )
        _until(selector, time.monotonic() + times.warm_up)
        begin = time.monotonic()
        _until(selector, begin + times.measured)
        latest = begin + LONGER * times.measured
        _until(selector, latest, lambda: all(_seen_since(one, begin) >= ENOUGH for one in running))
        end = time.monotonic()
        return tuple(rate(one.name, one.seen, begin, end) for one in running)


def rounds(
    first: Command,
    second: Command,
    times: Times,
    count: int,
    tell: Callable[[str], None],
    measure: Measure | None = None,
) -> list[Round]:
    """Measure a pair several times, in an order that alternates.

    What drifts (a GPU that gets warm, a machine that gets busy) then falls on both sides alike.

    Args:
        first: Of the pair.
        second: The other.
        times: Of each measurement.
        count: Of rounds.
        tell: Takes what begins.
        measure: Runs workloads at the same time; by default as processes of this machine.
    """
    measure = measure or rates
    done = []
    for number in range(count):
        told = f"round {number + 1} of {count}"
        if number % 2:
            tell(f"{told}: together")
            b, a = measure((second, first), times)
        tell(f"{told}: alone")
        order = (second, first) if number % 2 else (first, second)
        alone = [measure((one,), times)[0] for one in order]
        if number % 2:
            alone.reverse()
        else:
            tell(f"{told}: together")
            a, b = measure((first, second), times)
        done.append(Round((alone[0], alone[1]), (a, b)))
    return done


def _until(
    selector: selectors.BaseSelector, deadline: float, holds: Callable[[], bool] = lambda: False
) -> None:
    """Read what comes until a moment, or until something holds."""
    while not holds() and (left := deadline - time.monotonic()) > 0:
        for key, _ in selector.select(left):
            key.data.read()


def _seen_since(one: Workload, begin: float) -> int:
    return sum(at >= begin for at, _ in one.seen[-ENOUGH:])


def rate(name: str, seen: Sequence[tuple[float, float]], begin: float, end: float) -> float:
    """Return steps per second over a span of time.

    Args:
        name: Of the workload, for messages.
        seen: Moments, and steps done by then.
        begin: Of the span.
        end: Of the span.

    Raises:
        RunError: Too few steps were seen in it.
    """
    within = [(at, done) for at, done in seen if begin <= at <= end]
    if len(within) < ENOUGH:
        raise RunError(
            f"{name} has shown its steps {counted(len(within), 'time')} in "
            f"{end - begin:.0f} s; {ENOUGH} are"
            " needed: measure longer (--seconds), or let it print more often"
        )
    (first, before), (last, after) = within[0], within[-1]
    if after <= before:
        raise RunError(f"{name} did no steps in {end - begin:.0f} s")
    return (after - before) / (last - first)
