"""Loans of memory: what may be lent on each GPU, what is asked for, and who is to give back.

`alnair.sharing.loans` decides; this feeds it with what the counters and NVML say, and writes its
answers. A loan holds for a few seconds only, so a server that died lends nothing.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from alnair.node.gpu_looks import GpuLook
from alnair.node.nvml import NvmlGpu
from alnair.node.vgpu.containers.container import VgpuContainer
from alnair.sharing import loans

#: How long a loan holds without a word.
_HOLDS_NS: Final = 5_000_000_000
#: How often loans are looked at that nobody asks for more of.
_RENEWED_NS: Final = 1_000_000_000
#: Looks of which the largest use by others counts: NVML and the counters are never of one instant.
_LOOKS: Final = 5
#: Seconds that memory is waited for before a borrower must end, as pods that leave are waited for.
PATIENCE: Final = 10.0
#: Seconds for which what was lent to who still asks does not count as unused: longer than the
#: library waits. Who asks for ever, by a word in its page, gains no more.
_ASKS: Final = 1.5
#: Seconds after which a start that was not tried again is given up.
_GIVEN_UP: Final = 120.0

_Key = tuple[str, str]


class _Claim(msgspec.Struct):
    """What a pod that starts needs of a GPU: bytes, since when it waits, when it said so last."""

    bytes: int
    since: float
    renewed: float
    is_met: bool = False


class _Row(NamedTuple):
    container: VgpuContainer
    row: int


class MemoryLoans:
    """The loans on all GPUs.

    Args:
        containers: By name.
        clock: Seconds, as CLOCK_MONOTONIC of the containers.

    Attributes:
        evict: Called with (container, GPU, why) who must end, as an owner waits for its memory.
        at_driver: Loans that the driver's own limit allows for, where it holds the memory.
        wanted: Loans that it shall allow for.
    """

    def __init__(
        self,
        containers: Mapping[str, VgpuContainer],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._containers = containers
        self._clock = clock
        self._totals: dict[str, int] = {}
        self._outside: dict[str, deque[int]] = {}
        self._claims: dict[str, dict[str, _Claim]] = {}
        self._evicted: set[_Key] = set()
        self._looked_ns: dict[str, int] = {}
        self._asking: dict[_Key, float] = {}
        self.evict: Callable[[VgpuContainer, str, str], None] = lambda *_: None
        self.at_driver: dict[_Key, int] = {}
        self.wanted: dict[_Key, int] = {}

    def take(self, seen: GpuLook, gpus: Iterable[NvmlGpu]) -> None:
        """Take in one look at the GPUs: what nobody with a slice uses is lent to nobody."""
        self._totals = {gpu.uuid: gpu.memory_bytes for gpu in gpus}
        lending = self._lending()
        # Of all GPUs: who comes to borrow asks within its first second.
        for uuid, usage in seen.usages.items():
            rows = self._rows(uuid)
            if uuid in lending:
                for one in rows:
                    one.container.read()
            looks = self._outside.setdefault(uuid, deque(maxlen=_LOOKS))
            looks.append(usage.memory_bytes - sum(map(_held, rows)))
        for uuid in lending:
            self._reclaim(uuid)

    def tick(self) -> None:
        """Answer what is asked for, and renew what is lent."""
        for uuid in self._lending():
            rows = self._rows(uuid)
            now_ns = time.monotonic_ns()
            is_due = now_ns - self._looked_ns.get(uuid, 0) >= _RENEWED_NS
            if not is_due and not self._claimed(uuid) and not any(map(_asked, rows)):
                continue
            self._looked_ns[uuid] = now_ns
            tenants = self._tenants(uuid)
            lent = loans.lend(self._room(uuid, tenants), tenants)
            is_known = uuid in self._outside  # else it is soon: who asks waits for that
            for one in rows:
                name = one.container.assignment.name
                if name in lent.loans:
                    answered = is_known and name in lent.answered
                    self._write(one, uuid, lent.loans[name], answered, now_ns)

    def claim(self, pod: str, needs: Mapping[str, int]) -> str:
        """Say whether what a pod needs is there; "" if so, else it is on its way from now on.

        Args:
            pod: Its uid, or the name of a container of no pod.
            needs: GPU → bytes of all its slices.
        """
        now = self._clock()
        said = ""
        for uuid, needed in needs.items():
            claims = self._claims.setdefault(uuid, {})
            claim = claims.setdefault(pod, _Claim(needed, now, now))
            claim.bytes, claim.renewed = needed, now
            tenants = self._tenants(uuid)
            if missing := loans.lacking(self._room(uuid, tenants), tenants):
                said = said or (
                    f"{-(-missing >> 20)} MiB of {uuid} are lent to "
                    f"{', '.join(self._borrowers(uuid, tenants))} and come back"
                )
            else:
                claim.since, claim.is_met = now, True
        return said

    def unclaim(self, pod: str) -> None:
        """Forget what a pod needs."""
        for claims in self._claims.values():
            claims.pop(pod, None)

    def _lending(self) -> set[str]:
        return {
            share.uuid
            for container in self._containers.values()
            for share in container.assignment.shares
            if share.borrows
        }

    def _rows(self, uuid: str) -> list[_Row]:
        """Return who has slices of a GPU and may hold some of it: who is suspended does not."""
        return [
            _Row(container, row)
            for container in self._containers.values()
            for row, share in enumerate(container.assignment.shares)
            if share.uuid == uuid and not container.released
        ]

    def _tenants(self, uuid: str) -> dict[str, loans.Tenant]:
        """Return who has slices of a GPU, by what the counters say at this moment."""
        found = {}
        for one in self._rows(uuid):
            container, share = one.container, one.container.assignment.shares[one.row]
            key = container.assignment.name, uuid
            container.read()
            loan, asked = container.loan(one.row), _asked(one)
            if (ahead := self.wanted.get(key, 0) - loan) > 0 and share.tier_a:
                # The driver does not know of all of it yet: it is given, and not to be asked again.
                loan, asked = loan + ahead, max(0, asked - ahead)
            since = self._asking.setdefault(key, self._clock()) if asked else self._clock()
            if not asked:
                self._asking.pop(key, None)
            found[container.assignment.name] = loans.Tenant(
                granted=share.memory_mib << 20,
                held=_held(one),
                borrows=share.borrows,
                loan=loan,
                asked=asked,
                is_waiting=bool(asked) and self._clock() - since < _ASKS,
            )
        return found

    def _room(self, uuid: str, tenants: Mapping[str, loans.Tenant]) -> int:
        looks = self._outside.get(uuid)
        if not looks or uuid not in self._totals:
            return 0  # nobody knows what is free
        return loans.room(self._totals[uuid], max(looks), tenants, self._claimed(uuid))

    def _claimed(self, uuid: str) -> int:
        """Return what pods need of a GPU beyond what their containers have been given by now."""
        now, claims = self._clock(), self._claims.get(uuid, {})
        granted = dict.fromkeys(claims, 0)
        for one in self._rows(uuid):
            pod = one.container.assignment.pod.uid or one.container.assignment.name
            if pod in granted:
                granted[pod] += one.container.assignment.shares[one.row].memory_mib << 20
        for pod, claim in tuple(claims.items()):
            is_used = claim.is_met and granted[pod]
            if not is_used and now - claim.renewed > _GIVEN_UP:
                del claims[pod]
        return sum(max(0, claim.bytes - granted[pod]) for pod, claim in claims.items())

    def _reclaim(self, uuid: str) -> None:
        """Have those end who hold what an owner has waited for long enough."""
        names = {one.container.assignment.name for one in self._rows(uuid)}
        self._evicted -= {key for key in self._evicted if key[1] == uuid and key[0] not in names}
        now = self._clock()
        claims = self._claims.get(uuid, {}).values()
        if not any(not one.is_met and now - one.since > PATIENCE for one in claims):
            return
        tenants = self._tenants(uuid)
        leaving = frozenset(name for name, gpu in self._evicted if gpu == uuid)
        for name in loans.to_evict(self._room(uuid, tenants), tenants, leaving):
            self._evicted.add((name, uuid))
            borrowed = tenants[name].borrowed >> 20
            why = f"it holds {borrowed} MiB of {uuid} beyond its slice, which their owner needs"
            self.evict(self._containers[name], uuid, why)

    def _borrowers(self, uuid: str, tenants: Mapping[str, loans.Tenant]) -> list[str]:
        found = []
        for one in self._rows(uuid):
            assignment = one.container.assignment
            if tenants[assignment.name].taken:
                pod = assignment.pod
                found.append(f"{pod.namespace}/{pod.name}" if pod.uid else assignment.name)
        return sorted(set(found))

    def _write(self, one: _Row, uuid: str, loan: int, answered: bool, now_ns: int) -> None:
        share = one.container.assignment.shares[one.row]
        key = one.container.assignment.name, uuid
        self.wanted[key] = loan
        if share.tier_a:
            # The driver must allow for it first, else it refuses what the library lets pass.
            given = min(loan, self.at_driver.get(key, 0))
            loan, answered = given, answered and given == loan
        page = one.container.limits
        before = page.page.loan[one.row]
        until = before.until_ns
        if loan != before.bytes or until - now_ns < _HOLDS_NS // 2:
            until = now_ns + _HOLDS_NS
        page.lend(one.row, loan, until, now_ns if answered else before.answered_ns)

    def forget(self, name: str) -> None:
        """Drop what is known of a container."""
        self.unclaim(name)
        all_known: tuple[dict[_Key, Any], ...] = self.wanted, self.at_driver, self._asking
        for known in all_known:
            for key in [key for key in known if key[0] == name]:
                del known[key]


def _asked(one: _Row) -> int:
    return sum(slot.asked[one.row] for slot in one.container.slots if slot.owner and slot.asked)


def _held(one: _Row) -> int:
    """What it holds, has announced, and is charged by the driver besides."""
    devices = [slot.devices[one.row] for slot in one.container.slots if slot.owner]
    overhead = int(one.container.limits.page.device[one.row].memory_overhead)
    return sum(use.held + use.pending for use in devices) + overhead
