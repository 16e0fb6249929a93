"""What the driver says of a container, kept beside what its own pages say.

Once a second: memory that the driver charges beyond the ledger, prices by measured GPU time, what
the container owes, how far its word about its work is believed, and the accounts of its processes.
What follows is written into the limits page, or handed to `Compute`.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from alnair.node.readings.values import Load, Usage
from alnair.node.vgpu.compute_shares import Compute
from alnair.node.vgpu.containers.container import VgpuContainer
from alnair.node.vgpu.containers.container_slices import guaranteed
from alnair.profiler.process_samples import within
from alnair.sharing import rates
from alnair.sharing.accounts import ProcessAccount, entered
from alnair.sharing.belief import Belief, prove
from alnair.sharing.corrections import Overhead, learn
from alnair.sharing.debts import Debt, inexact, owe, payable

_MILLION: Final = 1_000_000
#: Of a word of the pages, as a number that may be below 0.
_SIGN: Final = 1 << 63
_Key = tuple[str, str]
#: Pid and start of a process, and the GPU.
_ProcessKey = tuple[int, int, str]


class DriverAccounts:
    """The accounts of all containers on all GPUs.

    Args:
        compute: Told how far containers are believed.
        started: When a process started, in clock ticks.

    Attributes:
        measured: Bytes that the driver charges to a container on a GPU, by both.
    """

    def __init__(self, compute: Compute, started: Callable[[int], int]) -> None:
        self._compute = compute
        self._started = started
        self._overheads: dict[_Key, Overhead] = {}
        self._prices: dict[_Key, rates.Price] = {}
        self._carried: dict[_Key, float] = {}
        self._charged: dict[_Key, tuple[float, int]] = {}
        self._debts: dict[_Key, Debt] = {}
        self._processes: dict[_ProcessKey, tuple[int, ProcessAccount]] = {}
        #: When what a process says it was charged was looked at last, and the nanoseconds then.
        self._said: dict[_ProcessKey, tuple[float, int]] = {}
        self._looked: dict[str, float] = {}
        #: GPUs of which NVML has told what a process used: some drivers say 0 of all.
        self._telling: set[str] = set()
        self.measured: dict[_Key, int] = {}

    def forget(self, containers: Iterable[str], uuids: Iterable[str]) -> None:
        """Drop what is known of others than these."""
        names, gpus = frozenset(containers), frozenset(uuids)
        all_known: tuple[dict[_Key, Any], ...] = (
            self._overheads,
            self._prices,
            self._carried,
            self._charged,
            self._debts,
            self.measured,
        )
        for known in all_known:
            for key in [k for k in known if k[0] not in names or k[1] not in gpus]:
                del known[key]
        for gpu in self._looked.keys() - gpus:
            del self._looked[gpu]

    def used(self, uuid: str, load: Load, usage: Usage | None) -> dict[int, float] | None:
        """Return the part of a GPU's time that each process used; None if that is not known.

        NVML takes the mean of a process over the samples in which it ran: the parts of all are
        brought down to what the GPU did as a whole, where NVML has the mean of that. Its last
        sample alone may be of a pause, or of a moment's work: then they are brought down to 1.
        """
        if any(load.shares.values()):
            self._telling.add(uuid)
        if load.mps or uuid not in self._telling:
            return None
        util = usage.util if usage is not None and usage.is_mean else None
        parts = within({pid: 100 * part for pid, part in load.shares.items()}, util)
        return {pid: part / 100 for pid, part in parts.items()}

    def granted(self, key: _Key) -> float | None:
        """Return the share that a container was granted at the last looks, at most."""
        debt = self._debts.get(key)
        return max(debt.granted) if debt is not None and debt.granted else None

    def is_in_debt(self, key: _Key) -> bool:
        """Whether a container lives off what it was not granted."""
        return self._debts.get(key, Debt()).is_near

    def account(self, uuid: str, pid: int) -> ProcessAccount | None:
        """Return the account of a process; None if it has none that can be judged."""
        known = self._processes.get((pid, self._started(pid), uuid))
        return known[1] if known is not None else None

    def charging(self, uuid: str, pid: int, charged_ns: int, now: float) -> float:
        """Return GPU seconds a second that a process says it was charged since the last look.

        At the first look it is nothing: how long it took to say so is not known.

        Args:
            uuid: Of the GPU.
            pid: The host's.
            charged_ns: What its slot says now, all in all.
            now: Monotonic seconds.
        """
        key = pid, self._started(pid), uuid
        then, before = self._said.get(key, (now, charged_ns))
        self._said[key] = now, charged_ns
        # A word that was settled to below 0 is one near 2^64: nobody is accused of that.
        grown = (charged_ns - before + _SIGN) % (2 * _SIGN) - _SIGN
        # Two looks may be close together: what came within a second came in one.
        return grown / 1e9 / max(1.0, now - then)

    def look(
        self,
        container: VgpuContainer,
        row: int,
        pids: list[int],
        load: Load,
        used: dict[int, float] | None,
        now: float,
    ) -> None:
        """Take in one look at a container on the GPU of a row.

        Args:
            container: Whose processes these are.
            row: Of its pages.
            pids: Its processes that the driver lists on the GPU.
            load: Of the GPU.
            used: What `used` says of it.
            now: Seconds of CLOCK_MONOTONIC, which the container has, too.
        """
        share = container.assignment.shares[row]
        key = container.assignment.name, share.uuid
        fields = self._overhead(key, container, row, pids, load)
        by_mps = self._compute.by_mps
        (by_mps.add if pids and load.mps.issuperset(pids) else by_mps.discard)(key)
        charged = container.totals.devices[row]["charged_ns"]
        then, before = self._charged.get(key, (now, charged))
        self._charged[key] = now, charged
        seconds = now - then
        percent = guaranteed(share)
        given = self._compute.take(key, percent / 100)
        mine = None if used is None else sum(used.get(pid, 0.0) for pid in pids)
        belief = prove(
            self._compute.beliefs.get(key, Belief()),
            claimed=given.claimed,
            told=(charged - before) / 1e9,
            measured=mine,
            seconds=seconds,
        )
        self._compute.beliefs[key] = belief
        if mine is not None and seconds > 0:
            paid, self._carried[key] = payable(
                self._carried.get(key, 0.0), (charged - before) / 1e9, given.most * seconds
            )
            if used and any(pid in used for pid in pids):
                fields |= self._price(key, container, row, paid, mine * seconds)
            if percent:
                debt = self._debts[key] = owe(
                    self._debts.get(key, Debt()),
                    used=mine,
                    granted=given.most,
                    seconds=seconds,
                    margin=inexact(sum(load.shares.values())),
                )
                fields["not_before_ns"] = round((now + debt.hold) * 1e9) if debt.hold else 0
                self._enter(container, row, pids, used or {}, seconds)
        container.limits.update(row, **fields)

    def _overhead(
        self, key: _Key, container: VgpuContainer, row: int, pids: list[int], load: Load
    ) -> dict[str, int]:
        said = [memory for pid in pids if (memory := load.memory[pid]) is not None]
        self.measured[key] = sum(said)
        if len(said) != len(pids) or load.mps:
            return {"memory_credit": 0}
        overhead = self._overheads[key] = learn(
            self._overheads.get(key, Overhead()),
            measured=sum(said),
            ledger=container.held(row),
            limit=container.assignment.shares[row].memory_mib << 20,
            loaded=container.loaded(row, pids),
        )
        return {"memory_overhead": overhead.bytes, "memory_credit": overhead.credit}

    def _price(
        self, key: _Key, container: VgpuContainer, row: int, paid: float, measured: float
    ) -> dict[str, int]:
        page = container.limits.page.device[row]
        scale = page.cost_scale_ppm / _MILLION or 1.0
        beside = frozenset({"others"}) if page.window_us else frozenset[str]()
        percent = guaranteed(container.assignment.shares[row])
        price = self._prices[key] = rates.weigh(
            rates.moved(self._prices.get(key, rates.Price()), beside, percent),
            predicted=paid / scale,
            measured=measured,
        )
        return {"cost_scale_ppm": round(price.scale * _MILLION)}

    def _enter(
        self,
        container: VgpuContainer,
        row: int,
        pids: list[int],
        used: dict[int, float],
        seconds: float,
    ) -> None:
        uuid = container.assignment.shares[row].uuid
        slots, index = container.slots, container.census.pids
        for pid in pids:
            at = index.get(pid)
            if at is None or at >= len(slots):
                continue
            charged = slots[at].devices[row].charged_ns
            key = pid, self._started(pid), uuid
            known = self._processes.get(key)
            before, account = known if known is not None else (charged, ProcessAccount())
            self._processes[key] = (
                charged,
                entered(
                    account,
                    charged=(charged - before) / 1e9,
                    used=used.get(pid, 0.0) * seconds,
                    seconds=seconds,
                ),
            )

    def keep_only(self, uuid: str, pids: Iterable[int]) -> None:
        """Drop the accounts of processes that the driver lists on a GPU no more."""
        there = frozenset(pids)
        all_known: tuple[dict[_ProcessKey, Any], ...] = self._processes, self._said
        for known in all_known:
            for key in [k for k in known if k[2] == uuid and k[0] not in there]:
                del known[key]
