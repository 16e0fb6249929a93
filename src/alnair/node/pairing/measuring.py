"""Rates of workloads that run at the same time, and of a pair alone and together."""

import contextlib
import selectors
import time
from collections.abc import Callable, Sequence

import msgspec

from alnair.node.pairing.workload import Command, RunError, Workload
from alnair.profiler.pair_speeds import Round

#: Seen steps that a rate needs.
_FEW = 3


class Times(msgspec.Struct, frozen=True):
    """Seconds.

    Attributes:
        warm_up: After the first steps of all, which do not count.
        measured: That count.
        patience: For the first step.
    """

    warm_up: float = 10.0
    measured: float = 30.0
    patience: float = 300.0


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
        end = time.monotonic()
        return tuple(_rate(one, begin, end) for one in running)


def rounds(
    first: Command,
    second: Command,
    times: Times,
    count: int,
    tell: Callable[[str], None],
) -> list[Round]:
    """Measure a pair several times, in an order that alternates.

    What drifts (a GPU that gets warm, a machine that gets busy) then falls on both sides alike.
    """
    done = []
    for number in range(count):
        told = f"round {number + 1} of {count}"
        if number % 2:
            tell(f"{told}: together")
            b, a = rates((second, first), times)
        tell(f"{told}: alone")
        order = (second, first) if number % 2 else (first, second)
        alone = [rates((one,), times)[0] for one in order]
        if number % 2:
            alone.reverse()
        else:
            tell(f"{told}: together")
            a, b = rates((first, second), times)
        done.append(Round((alone[0], alone[1]), (a, b)))
    return done


def _until(
    selector: selectors.BaseSelector, deadline: float, holds: Callable[[], bool] = lambda: False
) -> None:
    """Read what comes until a moment, or until something holds."""
    while not holds() and (left := deadline - time.monotonic()) > 0:
        for key, _ in selector.select(left):
            key.data.read()


def _rate(one: Workload, begin: float, end: float) -> float:
    seen = [(at, done) for at, done in one.seen if begin <= at <= end]
    if len(seen) < _FEW:
        raise RunError(
            f"{one.name} has shown its steps {len(seen)} times in {end - begin:.0f} s; {_FEW} are"
            " needed: measure longer (--seconds), or let it print more often"
        )
    (first, before), (last, after) = seen[0], seen[-1]
    if after <= before:
        raise RunError(f"{one.name} did no steps in {end - begin:.0f} s")
    return (after - before) / (last - first)
