"""What room costs beyond its worth where those who can go nowhere else will need it.

Bid prices, as in revenue management (Talluri and van Ryzin, *The Theory and Practice of Revenue
Management*, 2004, chapter 3): while demand arrives in the mix seen so far, a group of like nodes
has a price if demand that only it (or few others) can take is about to use it up, its GPUs or the
cores that go with them, and a second one for sets of k free GPUs of a node. Prices are 0 where
demand spreads like the supply.

Nodes that are wanted whole have one, too, which counts where pods leave: the part of demand that
takes more than half of such a node, the more the fewer nodes can give it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from alnair.model.nodes import Gpu, Node
from alnair.scheduler.plugins.opportunity_cost.workload_mix import Ask, WorkloadMix
from alnair.scheduler.state.gpus.devices import LEVELS, Devices
from alnair.scheduler.state.nodes.columns import Column, Columns

#: Pods between two reviews; the first ones come with the first pod, whom what is assumed keeps off
#: the rare GPUs, and after twice, four times and so on as many pods.
EVERY: Final = 128
#: GPUs of demand that are assumed before any came, spread evenly over the models.
_PRIOR: Final = 8.0
#: Load from which on there is a price, 1 being a group that is used up when the cluster is full;
#: prices go up in so many steps, and follow only a change of more than this many of them.
_FROM: Final = 0.5
_STEPS: Final = 4
_INERTIA: Final = 0.75
#: The highest price of shares: on a node with too few cores, a pod that asks for hardly any is
#: rewarded with up to 1, which must not outweigh it; and that of sets.
_MOST_SHARE: Final = 2.0
_MOST_SET: Final = 1.0
#: Prices of nodes that are wanted whole go in this part of a GPU, and follow clear changes, too;
#: up to a GPU, which is what it costs to open an idle one.
_WHOLE: Final = 1 / 32
#: Demand of less than this part of a set of GPUs asks for no set in reserve.
_HARDLY: Final = 0.1


class NodeGroup(msgspec.Struct, frozen=True, gc=False):
    """Nodes alike: by the GPUs they have, and their cores and memory as far as that matters."""

    model: str
    gpu_mib: int
    gpus: int
    cores: int
    ram_gib: int

    def holds(self, ask: Ask) -> bool:
        """Return whether such a node, when empty, has room for the pod."""
        return (
            ask.accepts(self.model)
            and ask.whole + bool(ask.memory_mib) <= self.gpus
            and ask.memory_mib <= self.gpu_mib
            and ask.cpu_milli <= self.cores * 1000
            and ask.ram_mib <= self.ram_gib * 1024
        )


class BidState(msgspec.Struct, frozen=True):
    """All prices, for snapshots.

    Attributes:
        steps: by group and number of GPUs, 1 for shares.
        due: after how many pods they are reviewed.
        whole: by group, for nodes that are wanted whole.
    """

    steps: tuple[tuple[NodeGroup, int, int], ...] = ()
    due: int = 1
    whole: tuple[tuple[NodeGroup, int], ...] = ()


class _Asked(msgspec.Struct, gc=False):
    """GPUs that are asked for, and millicores with them."""

    gpus: float = 0.0
    cpu: float = 0.0

    def room(self, free: Column, cpu: Column) -> Column:
        """Return how many of the free GPUs there are free cores for."""
        found: Column = np.minimum(free, cpu * (self.gpus / self.cpu)) if self.cpu else free
        return found


#: What demand is added up by: how many GPUs of it are whole, and who could give them (bits).
_Key = tuple[int, int]
_Demand = Mapping[_Key, _Asked]
#: What an ask is added to, None if no GPU is asked for or none will do; its GPUs and millicores.
_Taker = tuple[_Key | None, float, float]


class BidPrices:
    """Prices by row.

    Attributes:
        share: (rows,), GPUs per GPU that is taken.
        sets: number of GPUs k → (rows,), GPUs per set of k free GPUs that is broken.
        priced: for which k there is a price anywhere, 1 for shares.
        whole: (rows,), GPUs per placement of who could leave the node to those who want it whole.
    """

    def __init__(self) -> None:
        self.share: Column = np.zeros(0)
        self.sets: dict[int, Column] = {}
        self.priced: frozenset[int] = frozenset()
        self.whole: Column = np.zeros(0)
        self._group: NDArray[np.intp] = np.zeros(0, np.intp)
        self._groups: dict[NodeGroup | None, int] = {None: 0}
        self._steps: dict[tuple[int, int], int] = {}
        self._whole: dict[int, int] = {}
        self._takers: dict[Ask, _Taker] = {}
        self._due = 1

    def grow(self, rows: int) -> None:
        """Make room for so many rows."""
        if (extra := rows - self.share.size) > 0:
            self.share = np.pad(self.share, (0, extra))
            self.whole = np.pad(self.whole, (0, extra))
            self.sets = {k: np.pad(prices, (0, extra)) for k, prices in self.sets.items()}
            self._group = np.pad(self._group, (0, extra))

    def describe(self, row: int, node: Node | None, gpus: Sequence[Gpu]) -> None:
        """Follow the node of a row."""
        number = self._number(_group(node, gpus) if node and gpus else None)
        self._group[row] = number
        self.share[row] = self._price(number, 1)
        self.whole[row] = self._price_whole(number)
        for k, prices in self.sets.items():
            prices[row] = self._price(number, k)

    def review(self, mix: WorkloadMix, columns: Columns, devices: Devices) -> bool:
        """Set prices anew, if enough pods have come; returns whether any changed."""
        if mix.seen < self._due:
            return False
        self._due = mix.seen + min(mix.seen, EVERY)
        asked, cores = self._asked(mix.counts)
        rows = slice(0, columns.n)
        takes = columns.alive[rows] & ~columns.unschedulable[rows]
        group = np.where(takes, self._group[rows], 0)
        before = dict(self._steps), dict(self._whole)
        gpus = np.bincount(group, devices.count[rows], len(self._groups)).astype(float)
        self._set_whole(asked, gpus)
        free = (devices.cell[:, rows] % (LEVELS + 1)).sum(axis=0)
        supply = np.bincount(group, free, len(self._groups)) / LEVELS
        supply[0] = 0.0
        if float(supply.sum()) > 1 and asked:
            free_cpu = np.where(takes, np.maximum(columns.free[0, rows], 0.0), 0.0)
            cpu: Column = np.bincount(group, free_cpu, len(self._groups)).astype(float)
            cpu *= _shortage(asked, cores, float(supply.sum()), float(free_cpu.sum()))
            self._set_free(asked, supply, cpu, group, devices.whole_free[rows])
        if (self._steps, self._whole) == before:
            return False
        self._spread()
        # Where nothing leaves, the others are not read: with the turnover comes another mix.
        return self._steps != before[0] or mix.turnover > 0

    def _set_free(
        self,
        asked: _Demand,
        supply: Column,
        cpu: Column,
        group: NDArray[np.intp],
        whole_free: Column,
    ) -> None:
        """Set the prices of shares and of sets, which are those of what is free."""
        total = float(supply.sum())
        weight, gone = _until_full(asked, supply)
        self._set(1, self._scarcity(asked, supply, cpu, weight, gone), supply > 0)
        for k in sorted({k for k, _ in asked if k > 1}):
            free_sets = whole_free // k * k
            sets: Column = np.bincount(group, free_sets, len(self._groups)).astype(float)
            sets[0] = 0.0
            wanted = {
                takers: w.gpus * total / weight for (one, takers), w in asked.items() if one == k
            }
            self._set(k, _pressure(wanted, sets, k), sets > 0)

    def _set_whole(self, asked: _Demand, gpus: Column) -> None:
        """Set the prices of nodes that are wanted whole.

        Args:
            asked: so far.
            gpus: (groups,), that there are, free or not; none in group 0.
        """
        sizes = np.array([group.gpus if group is not None else 0 for group in self._groups])
        load = np.zeros(gpus.size)
        gpus[0] = 0.0
        total = sum(wanted.gpus for wanted in asked.values())
        for (k, takers), wanted in asked.items():
            there = _bits(takers, gpus.size)
            if k > 1 and (within := gpus[there].sum()) > 0:
                # Demand over supply alone is too little for a few nodes that alone will do: they
                # are taken while it is learned. A root, and no power, is the same on any machine.
                rarity = gpus.sum() / within
                load[there[2 * k > sizes[there]]] += (
                    wanted.gpus / total * rarity * math.sqrt(rarity)
                )
        for number, price in enumerate((np.minimum(load, 1.0) / _WHOLE).tolist()):
            if abs(price - self._whole.get(number, 0)) > _INERTIA:
                self._whole[number] = math.floor(price + 0.5)

    def state(self) -> BidState:
        """Return all prices."""
        groups = list(self._groups)
        steps = tuple(
            (group, k, step)
            for (number, k), step in self._steps.items()
            if step and (group := groups[number]) is not None
        )
        whole = tuple(
            (group, price)
            for number, price in self._whole.items()
            if price and (group := groups[number]) is not None
        )
        return BidState(steps, self._due, whole)

    def restore(self, state: BidState) -> None:
        """Set all prices as they were saved."""
        self._steps = {(self._number(group), k): step for group, k, step in state.steps}
        self._whole = {self._number(group): price for group, price in state.whole}
        self._due = state.due
        self._spread()

    def _number(self, group: NodeGroup | None) -> int:
        number = self._groups.get(group)
        if number is None:
            number = self._groups[group] = len(self._groups)
            self._takers.clear()
        return number

    def _price(self, number: int, k: int) -> float:
        most = _MOST_SHARE if k == 1 else _MOST_SET
        return most * self._steps.get((number, k), 0) / _STEPS

    def _price_whole(self, number: int) -> float:
        return self._whole.get(number, 0) * _WHOLE

    def _asked(self, demand: Mapping[Ask, float]) -> tuple[_Demand, float]:
        """Return what is asked for, and the millicores of all pods, those without GPUs too."""
        found: dict[_Key, _Asked] = {}
        cores = 0.0
        takers = self._takers
        for ask, count in demand.items():
            known = takers.get(ask)
            if known is None:
                known = takers[ask] = self._taker(ask)
            key, gpus, cpu = known
            cores += cpu * count
            if key is not None:
                one = found.get(key)
                if one is None:
                    one = found[key] = _Asked()
                one.gpus += gpus * count
                one.cpu += cpu * count
        return found, cores

    def _taker(self, ask: Ask) -> _Taker:
        if not (ask.whole or ask.memory_mib):
            return None, 0.0, ask.cpu_milli
        groups = [(g, bit) for g, bit in self._groups.items() if g is not None and g.holds(ask)]
        if not groups:
            return None, 0.0, ask.cpu_milli
        part = 0.0
        if ask.memory_mib:
            part = min(ask.memory_mib / max(group.gpu_mib, 1) for group, _ in groups)
            part = max(part, ask.compute / 100)
        key = max(ask.whole, 1), sum(1 << bit for _, bit in groups)
        return key, ask.whole + part, ask.cpu_milli

    def _scarcity(
        self,
        asked: _Demand,
        supply: Column,
        cpu: Column,
        weight: float,
        gone: NDArray[np.bool_],
    ) -> Column:
        """Return how much more is asked of each group than if all could go everywhere.

        It is 1 where demand that can go nowhere else uses the group up just when the cluster is
        full. GPUs that lack the cores which go with them in such demand are of no use to it.

        Args:
            asked: so far.
            supply: (groups,), free GPUs.
            cpu: (groups,), free millicores, as far as they are fewer than elsewhere.
            weight: how much is asked for until all is taken.
            gone: (groups,), whether it is used up before.
        """
        total = supply.sum()
        load = np.zeros_like(supply)
        for (_, takers), wanted in asked.items():
            there = _bits(takers, supply.size)
            if not gone[there].all():
                there = there[~gone[there]]
            if (within := wanted.room(supply[there], cpu[there]).sum()) > 0:
                load[there] += wanted.gpus * (total - supply[there].sum()) / within
        by_model: dict[str, list[int]] = {}
        for group, number in self._groups.items():
            if group is not None and supply[number] > 0:
                by_model.setdefault(group.model, []).append(number)
        for numbers in by_model.values():
            load[numbers] += _PRIOR / len(by_model) * (total / supply[numbers].sum() - 1.0)
        load /= weight
        return load

    def _set(self, k: int, load: Column, there: NDArray[np.bool_]) -> None:
        for number in np.flatnonzero(there).tolist():
            wanted = _STEPS * min(max((load[number] - _FROM) / (1 - _FROM), 0.0), 1.0)
            if abs(wanted - self._steps.get((number, k), 0)) > _INERTIA:
                self._steps[number, k] = math.floor(wanted + 0.5)

    def _spread(self) -> None:
        """Bring prices by group to the rows."""
        self.priced = frozenset(k for (_, k), step in self._steps.items() if step)

        def by_row(k: int) -> Column:
            prices = np.array([self._price(number, k) for number in range(len(self._groups))])
            found: Column = prices[self._group]
            return found

        self.share = by_row(1)
        self.sets = {k: by_row(k) for k in sorted(self.priced - {1})}
        whole = [self._price_whole(number) for number in range(len(self._groups))]
        self.whole = np.array(whole)[self._group]


def _shortage(asked: _Demand, cores: float, gpus: float, cpu: float) -> float:
    """Return how many times the free cores are asked for until all free GPUs are, at least 1.

    Where it is more, cores run out all over: no group is short of them for that alone.

    Args:
        asked: GPUs so far.
        cores: millicores so far, of pods without GPUs too.
        gpus: that are free.
        cpu: millicores that are free.
    """
    there = cpu * sum(one.gpus for one in asked.values())
    return max(cores * gpus / there, 1.0) if there else 1.0


def _pressure(wanted: Mapping[int, float], sets: Column, k: int) -> Column:
    """Return the part of each group's free sets that is expected to be needed, and one more."""
    load, reserve = np.zeros_like(sets), np.zeros_like(sets)
    for takers, gpus in wanted.items():
        there = _bits(takers, sets.size)
        if (within := sets[there].sum()) > 0:
            load[there] += gpus / within
            if gpus >= _HARDLY * k:
                reserve[there] = np.maximum(reserve[there], 1.0 / within)
    load += k * reserve
    return load


def _until_full(asked: _Demand, supply: Column) -> tuple[float, NDArray[np.bool_]]:
    """Return how much is asked for until all is taken, and the groups that are used up before.

    Who can go to few groups only takes no more than there is. What he asks for beyond takes nothing
    of the others, so more of what others ask for comes until they are full.

    Args:
        asked: so far.
        supply: (groups,), free GPUs.
    """
    gpus: dict[int, float] = {}
    for (_, takers), amount in asked.items():
        gpus[takers] = gpus.get(takers, 0.0) + amount.gpus
    demand = np.array(list(gpus.values()))
    where = np.zeros((demand.size, supply.size), bool)
    for number, takers in enumerate(gpus):
        where[number, _bits(takers, supply.size)] = True
    total = left = float(supply.sum())
    coming = float(demand.sum()) + _PRIOR
    gone = np.zeros(supply.size, bool)
    while left > 1:
        # Sums rather than products of matrices: those depend on the machine's library.
        room = np.where(where & ~gone, supply, 0.0).sum(axis=1)
        part = np.where(demand > 0, demand / np.maximum(room, 1.0), 0.0)
        first = int(part.argmax())
        if part[first] * left <= coming:
            break
        left -= room[first]
        coming -= demand[first]
        demand[first] = 0.0
        gone |= where[first]
    return coming * total / max(left, 1.0), gone


def _bits(mask: int, size: int) -> NDArray[np.intp]:
    return np.array([bit for bit in range(size) if mask >> bit & 1], np.intp)


def _group(node: Node, gpus: Sequence[Gpu]) -> NodeGroup:
    """Return the node's group; sizes are rounded, since like machines differ a little."""
    ram = node.allocatable.get("memory", 0) >> 30
    digits = 10 ** max(0, len(str(ram)) - 2)
    cores = node.allocatable.get("cpu", 0) // 1000
    return NodeGroup(gpus[0].model, gpus[0].memory_mib, len(gpus), cores, ram // digits * digits)
