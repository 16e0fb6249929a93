"""OpportunityCost: pods go where what they take is worth the least to pods like those of late.

What a placement costs, in GPUs, is the sum of

- what is taken of GPUs. A slice takes the worth of its GPU's room before less that after
  (`alnair.scheduler.plugins.opportunity_cost.cutting_stock`), so one in a hole that no other could
  use costs nothing, and one that leaves such a hole costs a whole GPU;
- by how much more GPUs of the node lack the cores and the memory that go with them
  (`alnair.scheduler.plugins.opportunity_cost.imbalance`). So pods without GPUs keep to nodes that
  have cores to spare, the more strictly the sooner cores run out
  (`alnair.scheduler.plugins.opportunity_cost.partners`);
- where cores or memory do not suffice for all, what the pods that fit into the node's rest would
  make of it (`alnair.scheduler.plugins.opportunity_cost.remainders`).

Costs are rounded, so that small differences do not scatter pods: nodes that cost alike are filled
one after another, in the order that breaks ties; pods with whole GPUs open no idle node among them
while another will do, and go where most pods are. Where pods leave again, GPUs and nodes that are
free or will be soon are kept for who wants them whole
(`alnair.scheduler.plugins.opportunity_cost.departures`).
"""

import math
from collections.abc import Callable
from typing import Annotated, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.arguments import Arguments, out_of_range
from alnair.scheduler.framework.busy_gpus import NotBusy
from alnair.scheduler.framework.extension_points import Depends, Normalize, Score
from alnair.scheduler.framework.score_weights import PARTS
from alnair.scheduler.plugins.opportunity_cost.bid_prices import BidPrices
from alnair.scheduler.plugins.opportunity_cost.busy_prices import BusyPrices
from alnair.scheduler.plugins.opportunity_cost.demand_observer import DemandObserver, DemandState
from alnair.scheduler.plugins.opportunity_cost.departures import Departures
from alnair.scheduler.plugins.opportunity_cost.gpu_prices import GRAIN, NO_PLACE, GpuPrices
from alnair.scheduler.plugins.opportunity_cost.imbalance import Imbalance
from alnair.scheduler.plugins.opportunity_cost.partners import partner, scarcity_of
from alnair.scheduler.plugins.opportunity_cost.remainders import Remainders
from alnair.scheduler.plugins.opportunity_cost.supply import SupplyState
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Rows, of_rows, single

_NAME: Final = "OpportunityCost"
#: The score of a placement that costs nothing beyond the whole GPUs that it takes.
_EVEN = 400.0
#: Of nodes that cost alike, a pod with whole GPUs opens no idle one, which may be wanted whole:
#: what that scores less. Then it goes where most pods are, as that node will be free later anyway.
#: Both are less than a step of the costs.
_IDLE: Final = 0.5
_MOST_PODS: Final = 31.0

#: While too little was learned, what a node scores whose GPUs are not rare, and how much less for a
#: price of a GPU: for the least, more than those differ by who then decide; for the highest, less
#: than what a pod prefers may count.
_COMMON: Final = 180.0
_RARE: Final = 90.0

#: A range that the chart's schema tells, too.
Percent = Annotated[float, msgspec.Meta(ge=0, le=100)]


class OpportunityCostArguments(Arguments, frozen=True):
    """Arguments of OpportunityCost.

    Attributes:
        step: costs are rounded to this many GPUs, which is one point of the score, or to some
            steps where cores or memory are scarce and pods ask for nothing else.
        softness: m of the soft maximum, in GPUs, for what there is plenty of beside GPUs: the
            smaller, the sharper.
        least_softness: the same for what runs out together with GPUs. Where it is not less than
            `softness`, nothing follows what is scarce.
        target_utilization: percent of time that a GPU is measured to be busy, beyond which slices
            pay more for it; 100 is never.
        max_utilization: percent of time beyond which no slice joins others on a GPU; 0 is no limit.
        until_learned: score plugins that decide as long as too few pods came to learn from, and
            then have no say; meanwhile this one only keeps pods off GPUs that are rare.
    """

    step: float = 0.05
    softness: float = 0.2
    least_softness: float = 0.05
    target_utilization: Percent = 70.0
    max_utilization: Percent = 0.0
    until_learned: tuple[str, ...] = ()

    @property
    def tells_scarcity(self) -> bool:
        """Whether what is scarce counts otherwise than what there is plenty of."""
        return self.least_softness < self.softness

    def problems(self) -> list[str]:
        """Return what is out of range."""
        return [
            *out_of_range("step", self.step, 0.001, 1.0),
            *out_of_range("softness", self.softness, 0.001, 10.0),
            *out_of_range("leastSoftness", self.least_softness, 0.001, 10.0),
        ]


class OpportunityCost:
    """Scores nodes and GPUs by what the placement takes from the pods to come."""

    name = _NAME
    Args = OpportunityCostArguments
    State = DemandState
    #: Older snapshots hold mix and bid prices by themselves.
    former_entries = ("mix", "bids")
    #: A step of the costs is a point, and 100 points would not reach from bad to good. A placement
    #: may also gain: no node has as many GPUs as this leaves room for.
    most = int(2 * _EVEN)
    fine = True

    def __init__(self, arguments: OpportunityCostArguments | None = None) -> None:
        self._arguments = arguments or OpportunityCostArguments()
        self.reads_loads = (
            self._arguments.target_utilization < 100 or self._arguments.max_utilization > 0
        )
        self._known: _Known | None = None

    def observe(self, cluster: Cluster) -> DemandObserver:
        """Learn what pods ask for as they come: prices change with it."""
        return DemandObserver(cluster)

    def filter(self, spec: PodSpec, cluster: Cluster) -> NotBusy | None:
        """Compile the filter, if there is a limit."""
        limit = self._arguments.max_utilization
        slices = spec.gpu is not None and bool(spec.gpu.memory_mib)
        return NotBusy(spec, cluster, limit) if slices and limit else None

    def score(self, spec: PodSpec, cluster: Cluster) -> Score | None:
        """Compile the score."""
        if not any(cluster.devices.there):
            return None  # this is asked again when the first GPU comes
        if self._leaves_it(cluster):
            bids = _learned(cluster).bids
            return _Rarity(bids) if spec.gpu and 1 in bids.priced else None
        busy = self._busy(spec, cluster)
        known, instead_of = self._know(cluster), self._arguments.until_learned
        return _Cost(spec, cluster, known, self._arguments.step, busy, instead_of)

    def gpus(self, spec: PodSpec, cluster: Cluster) -> Callable[[Rows], Column] | None:
        """Compile the scores of GPUs."""
        if spec.gpu is None or not spec.gpu.memory_mib:
            return None
        if self._leaves_it(cluster):
            return None
        known = self._know(cluster)
        table = known.prices.cost_of_slice(spec.gpu)
        table = table + (table & 1) * known.departures(cluster, 1).opening_gpu
        busy = self._busy(spec, cluster)

        def scores(rows: Rows) -> Column:
            costs = table[cluster.devices.cell[:, rows]]
            refused = None
            if busy.count:
                costs = costs + busy.of(rows)
                refused = busy.refused(rows)
            scores: Column = (100.0 - costs * (100.0 / NO_PLACE)).astype(float)
            return scores if refused is None else np.where(refused, -1.0, scores)

        return scores

    def _busy(self, spec: PodSpec, cluster: Cluster) -> BusyPrices:
        arguments = self._arguments
        return BusyPrices(spec, cluster, arguments.target_utilization, arguments.max_utilization)

    def _leaves_it(self, cluster: Cluster) -> bool:
        """Return whether others decide, as long as too little was learned."""
        return bool(self._arguments.until_learned) and not _learned(cluster).mix.demand

    def _know(self, cluster: Cluster) -> "_Known":
        if self._known is None or not self._known.still_holds(cluster):
            self._known = _Known(cluster, self._arguments)
        return self._known


class _Known:
    """What all classes share, for one mix and the GPUs that there are."""

    def __init__(self, cluster: Cluster, arguments: OpportunityCostArguments) -> None:
        self._cluster = cluster
        demand = _learned(cluster)
        self._mix = demand.mix.version
        self.turnover = demand.mix.turnover
        self.bids = demand.bids
        self._there = list(cluster.devices.there)
        kinds = tuple(cluster.devices.kinds)
        self.prices = GpuPrices(demand.mix.demand, kinds, self._there)
        self._supply = demand.supply.version
        there = demand.supply.known
        softness = arguments.softness, arguments.least_softness
        cpu = partner(self.prices.cpu, there.cpu, *softness)
        memory = partner(self.prices.memory, there.memory, *softness)
        remainders = self._remainders(there) if arguments.tells_scarcity else ()
        self.imbalance = Imbalance(cluster, self.prices, (cpu, memory), remainders)
        #: Costs of pods without GPUs are rounded to so many steps: the sharper, the further apart
        #: are costs of nodes that are much alike.
        sharpest = min(cpu.softness, memory.softness)
        self.steps_apart = math.floor(arguments.softness / sharpest + 0.5)

    def _remainders(self, there: SupplyState) -> list[Remainders]:
        prices = self.prices
        return [
            Remainders(prices.cpu_of_pods, scarcity_of(prices.cpu, there.cpu)),
            Remainders(prices.memory_of_pods, scarcity_of(prices.memory, there.memory)),
        ]

    def departures(self, cluster: Cluster, gpus: int) -> Departures:
        """Return what pods that take so many GPUs cost where pods leave."""
        return Departures(cluster, self.bids, self.turnover, gpus)

    def still_holds(self, cluster: Cluster) -> bool:
        return (
            self._cluster is cluster
            and self._mix == _learned(cluster).mix.version
            and self._supply == _learned(cluster).supply.version
            and self._there == cluster.devices.there
        )


def _learned(cluster: Cluster) -> DemandObserver:
    """Return what was learned of pods, which is nothing where no engine tells of any."""
    found: DemandObserver | None = cluster.observations.of(_NAME)
    return DemandObserver() if found is None else found


class _Rarity:
    """Keeps pods off rare GPUs while nothing else was learned, and leaves all else to others."""

    depends = Depends.NODE
    normalize: Normalize | None = None

    def __init__(self, bids: BidPrices) -> None:
        self._bids = bids

    def __call__(self, rows: Rows) -> Column:
        score: Column = _COMMON - _RARE * of_rows(self._bids.share, rows)
        return score


class _Cost:
    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(
        self,
        spec: PodSpec,
        cluster: Cluster,
        known: "_Known",
        step: float,
        busy: BusyPrices,
        instead_of: tuple[str, ...],
    ) -> None:
        self.instead_of = instead_of
        self._busy = busy
        self._devices, self._bids = cluster.devices, known.bids
        self._columns = cluster.columns
        self._imbalance = imbalance = known.imbalance
        self._step = step
        requests = dict(spec.requests)
        # Sums of requests may be larger than any integer of NumPy.
        asked = np.array([[requests.get("cpu", 0)], [requests.get("memory", 0)]], float)
        self._asked = asked
        self._asked_of: list[float] = asked[:, 0].tolist()
        self._more: Column = asked * imbalance.each
        self._cpu, self._memory = (float(part) for part in self._more[:, 0])
        demand = spec.gpu
        self._whole = demand.whole if demand else 0
        sliced = demand is not None and bool(demand.memory_mib)
        self._table = known.prices.cost_of_slice(demand) if demand and sliced else None
        gpus = self._whole + sliced
        self._steps = 1 if gpus else known.steps_apart
        self._takes = gpus > 0
        self._departures = known.departures(cluster, gpus)
        self._opening = self._departures.opening_gpu if sliced else 0
        priced = known.bids.priced
        self._shares = 1 in priced
        #: Sets of so many GPUs that the pod may break.
        self._sets = [k for k in sorted(priced) if k > max(gpus, 1)] if gpus else []

    def __call__(self, rows: Rows) -> Column:
        imbalance = self._imbalance
        imbalance.refresh()
        if (row := single(rows)) is not None and not self._busy.count:
            return np.array([self._of(row)])
        excess = of_rows(imbalance.excess, rows) + self._more
        more: NDArray[np.int64] | int = 0
        taken: Column | float = float(self._whole)
        opened: Column | int = self._whole
        if self._table is not None:
            costs = self._table.take(of_rows(self._devices.cell, rows))
            least: NDArray[np.int64] = costs.min(axis=0, initial=NO_PLACE)
            if self._busy.count or self._opening:
                least, more = self._busy.add(costs, rows, self._opening)
            taken = (least >> 1).astype(float) * GRAIN + taken
            opened = (least & 1).astype(float) + opened
        excess -= taken
        cost = imbalance.soft(excess)
        if imbalance.remains:
            cost -= imbalance.left(rows, taken, self._asked)
        cost -= imbalance.cost[rows]
        if self._takes:
            # Opening an idle node brings no reward for cores and memory that it has in excess.
            np.maximum(cost, 0.0, out=cost, where=imbalance.idle[rows])
            cost += taken
        if self._shares:
            cost += self._bids.share[rows] * np.maximum(cost, taken)
        if self._sets:
            free = self._devices.whole_free[rows]
            left = np.maximum(free - opened, 0.0)
            for k in self._sets:
                cost += self._bids.sets[k][rows] * (free // k - left // k)
        if self._busy.count or self._opening:
            cost += more * (GRAIN / 2)
        if self._departures.count:
            cost += self._departures.of(rows, imbalance.idle[rows])
        cost -= self._whole
        cost /= self._step * self._steps
        cost += 0.5
        np.floor(cost, out=cost)
        cost *= self._steps
        np.subtract(_EVEN, cost, out=cost)
        if self._whole:
            pods = np.minimum(self._columns.pods(rows), _MOST_PODS) / PARTS
            cost += np.where(imbalance.idle[rows], -_IDLE, pods)
        return np.maximum(cost, 0.0, out=cost)

    def _of(self, row: int) -> float:
        """Return the score of one row: in plain numbers, since arrays of one are slow."""
        imbalance = self._imbalance
        taken, opened, more = float(self._whole), self._whole, 0.0
        if self._table is not None:
            costs = self._table.take(self._devices.cell[:, row]).tolist()
            if opening := self._opening:
                least = min(costs, key=lambda cost: cost + (cost & 1) * opening, default=NO_PLACE)
                more = (least & 1) * opening * (GRAIN / 2)
            else:
                least = min(costs, default=NO_PLACE)
            taken += (least >> 1) * GRAIN
            opened += least & 1
        cost = imbalance.soft_of(
            imbalance.excess.item(0, row) + self._cpu - taken,
            imbalance.excess.item(1, row) + self._memory - taken,
        )
        if imbalance.remains:
            cost -= imbalance.left_of(row, taken, self._asked_of)
        cost -= imbalance.cost.item(row)
        if self._takes:
            if imbalance.idle.item(row):
                cost = max(cost, 0.0)
            cost += taken
        if self._shares:
            cost += self._bids.share.item(row) * max(cost, taken)
        if self._sets:
            free = self._devices.whole_free.item(row)
            left = max(free - opened, 0.0)
            for k in self._sets:
                cost += self._bids.sets[k].item(row) * (free // k - left // k)
        if self._departures.count:
            cost += more + self._departures.of_one(row, idle=imbalance.idle.item(row))
        cost -= self._whole
        even = _EVEN
        if self._whole:
            pods = min(self._columns.pods_on(row), _MOST_PODS) / PARTS
            even += -_IDLE if imbalance.idle.item(row) else pods
        return max(even - self._steps * math.floor(cost / (self._step * self._steps) + 0.5), 0.0)
