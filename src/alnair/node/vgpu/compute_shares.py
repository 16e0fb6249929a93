"""The rates of compute: what each container was seen to use becomes what each may use now.

`alnair.sharing.rates` decides; this feeds it with what the counters say and writes its answers. A
rate holds for five ticks only, so that a server that died leaves nobody with more, or less, than
the guaranteed share.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from alnair.node.vgpu.containers.container import VgpuContainer
from alnair.node.vgpu.containers.container_slices import guaranteed
from alnair.node.vgpu.pages.counters import Slot
from alnair.sharing import rates
from alnair.sharing.belief import Belief, believed
from alnair.sharing.turns import Turn, turns

#: Time between ticks; the control loop's delay, so a tenth of the 500 ms that limits may take.
TICK_NS: Final = 50_000_000
_HOLDS_NS: Final = 5 * TICK_NS
#: What a container may use of a GPU while it is throttled for a violation.
THROTTLED: Final = 0.01
#: The share that stands for a tenant without a limit that used nothing yet.
_LEAST: Final = 0.01

#: A share below which a tenant without work is not looked at until its counters move.
_ASLEEP: Final = 0.001
_MILLION: Final = 1_000_000

_Key = tuple[str, str]


class Given(NamedTuple):
    """What a container had of a GPU since it was last asked: GPU seconds kept for it, and rate."""

    claimed: float
    most: float


class Compute:
    """The rates on all GPUs.

    Attributes:
        beliefs: How far a container's word about its work on a GPU is believed.
        throttled: (container, GPU) held down because of a violation.
        by_mps: (container, GPU) where all processes of the one are clients of an MPS server.
        busy: GPUs on which somebody works, or is held down.
    """

    def __init__(self) -> None:
        self._activity: dict[_Key, rates.Activity] = {}
        self._seen: dict[str, tuple[Slot, ...]] = {}
        self._asleep: set[_Key] = set()
        #: Containers that are so on all of their GPUs.
        self._all_asleep: set[str] = set()
        self.busy: set[str] = set()
        self._turns: dict[str, dict[str, Turn]] = {}
        self.throttled: set[_Key] = set()
        self.by_mps: set[_Key] = set()
        self.beliefs: dict[_Key, Belief] = {}
        self._given: dict[_Key, Given] = {}
        self._divided: dict[str, int] = {}

    @property
    def shared(self) -> list[str]:
        """GPUs on which tenants take turns."""
        return [uuid for uuid, taken in self._turns.items() if taken]

    def take(self, key: _Key, guaranteed: float) -> Given:
        """Return what a container had of a GPU since this was last asked.

        Args:
            key: (container, GPU).
            guaranteed: Its share, which it has where nothing else was said; 0 is no limit.
        """
        given = self._given.pop(key, Given(0.0, 0.0))
        return given._replace(most=given.most or guaranteed or 1.0)

    def forget(self, name: str) -> None:
        """Drop what is known of a container."""
        self._seen.pop(name, None)
        self._all_asleep.discard(name)
        self._activity = {key: a for key, a in self._activity.items() if key[0] != name}
        self._asleep = {key for key in self._asleep if key[0] != name}
        self.throttled = {key for key in self.throttled if key[0] != name}
        self.by_mps = {key for key in self.by_mps if key[0] != name}
        self.beliefs = {key: one for key, one in self.beliefs.items() if key[0] != name}
        self._given = {key: one for key, one in self._given.items() if key[0] != name}

    def tick(self, containers: Iterable[VgpuContainer], now_ns: int) -> None:
        """Read the use of all, and write the rates that follow."""
        all_, busy = list(containers), set[str]()
        for container in all_:
            name, slots = container.assignment.name, container.slots
            is_idle = self._seen.get(name) is slots
            if is_idle and name in self._all_asleep:
                continue  # most containers, most of the time
            self._seen[name] = slots
            all_asleep = is_idle
            for row, share in enumerate(container.assignment.shares):
                key = name, share.uuid
                before = self._activity.get(key)
                if is_idle and key in self._asleep:
                    continue
                all_asleep = False
                self._activity[key] = after = _observe(container, row, now_ns, before)
                if after.is_active(now_ns):
                    busy.add(share.uuid)
                elif after.used < _ASLEEP:
                    self._asleep.add(key)
                    continue
                self._asleep.discard(key)
            (self._all_asleep.add if all_asleep else self._all_asleep.discard)(name)
        busy |= {uuid for _, uuid in self.throttled}
        for uuid in busy | self.busy:
            self._divide(uuid, all_, now_ns, is_busy=uuid in busy)
        self.busy = busy

    def _divide(
        self, uuid: str, containers: list[VgpuContainer], now_ns: int, *, is_busy: bool
    ) -> None:
        """Write the rates of one GPU; where nobody works, everybody has the guaranteed share."""
        rows = [
            (container, row, share)
            for container in containers
            for row, share in enumerate(container.assignment.shares)
            if share.uuid == uuid
        ]
        demands = {}
        for container, row, share in rows:
            seen = self._activity[container.assignment.name, uuid]
            percent = guaranteed(share)
            said = rates.TenantDemand(
                guaranteed=percent / 100 if percent else min(1.0, max(_LEAST, seen.used)),
                soft=share.soft,
                low=share.low_priority,
                active=seen.is_active(now_ns),
                used=seen.used,
                held_back=seen.held_back,
                pressed=seen.pressed,
                used_long=seen.used_long,
                used_turn=seen.used_turn,
                used_slow=seen.used_slow,
                owes=_owes(container, row, now_ns),
                limited=bool(percent),
                by_mps=(container.assignment.name, uuid) in self.by_mps,
            )
            belief = self.beliefs.get((container.assignment.name, uuid))
            demands[container.assignment.name] = believed(said, belief) if belief else said
        granted = rates.grant(demands) if is_busy else {}
        self._note_given(uuid, demands, granted, now_ns)
        taken = turns(demands, granted, self._turns.get(uuid)) if granted else {}
        self._turns[uuid] = taken
        for container, row, _ in rows:
            turn = taken.get(container.assignment.name)
            self._write(container, row, demands, granted, turn, now_ns)

    def _note_given(
        self,
        uuid: str,
        demands: dict[str, rates.TenantDemand],
        granted: dict[str, float],
        now_ns: int,
    ) -> None:
        since = self._divided.get(uuid, 0)
        self._divided[uuid] = now_ns
        seconds = min(now_ns - since, _HOLDS_NS) / 1e9
        for name, share in granted.items():
            old = self._given.get((name, uuid), Given(0.0, 0.0))
            claimed = old.claimed + min(share, demands[name].wants) * seconds
            self._given[name, uuid] = Given(claimed, max(old.most, share))

    def _write(
        self,
        container: VgpuContainer,
        row: int,
        demands: dict[str, rates.TenantDemand],
        granted: dict[str, float],
        turn: Turn | None,
        now_ns: int,
    ) -> None:
        share = container.assignment.shares[row]
        name, percent = container.assignment.name, guaranteed(share)
        ppm = 0
        if (name, share.uuid) in self.throttled:
            ppm = round(THROTTLED * _MILLION)
        elif granted:
            ppm = round((turn.share if turn else granted[name]) * _MILLION)
        # Without a rate the guaranteed share holds: the page of who has just that is left alone.
        if not percent or (not turn and ppm == percent * _MILLION // 100):
            ppm = 0
        device = container.limits.page.device[row]
        until = 0
        if ppm:
            until = device.rate_until_ns
            if ppm != device.rate_ppm or until - now_ns < _HOLDS_NS // 2:
                until = now_ns + _HOLDS_NS
        count, used = rates.neighbours(name, demands) if granted else (0, 0.0)
        period_us = rates.PERIOD_NS // 1000 if turn else 0
        container.limits.update(
            row,
            rate_ppm=ppm,
            rate_until_ns=until,
            neighbours=count,
            others_ppm=round(used * _MILLION),
            window_period_us=period_us,
            window_begin_us=int(turn.begin * period_us) if turn else 0,
            window_us=int(turn.length * period_us) if turn else 0,
        )


def _owes(container: VgpuContainer, row: int, now_ns: int) -> float:
    """Return the seconds in which it may launch nothing, by its own account or the server's."""
    held_ns = int(container.limits.page.device[row].not_before_ns)
    return max(0, container.counters.earned_ns(row) - now_ns, held_ns - now_ns) / 1e9


def _observe(
    container: VgpuContainer, row: int, now_ns: int, before: rates.Activity | None
) -> rates.Activity:
    sums = container.totals.devices[row]
    waiting = sum(slot.devices[row].waiting for slot in container.slots if slot.owner)
    asleep_ns = max(2, container.counters.passed) * TICK_NS
    if before is not None and now_ns - before.last.now_ns > asleep_ns:
        # It slept, and was looked at every few ticks: nothing happened until the last time.
        last = msgspec.structs.replace(before.last, now_ns=now_ns - asleep_ns)
        before = msgspec.structs.replace(before, last=last)
    reading = rates.Reading(now_ns, sums["charged_ns"], sums["launches"], min(waiting, 1 << 20))
    return rates.observe(before, reading)
