"""What is learned of pods and nodes as they come: what is asked for, is there, and is scarce."""

import msgspec

from alnair.model.nodes import Node
from alnair.model.workload import Pod
from alnair.scheduler.framework.extension_points import Observer
from alnair.scheduler.plugins.opportunity_cost.bid_prices import BidPrices, BidState
from alnair.scheduler.plugins.opportunity_cost.supply import Supply, SupplyState
from alnair.scheduler.plugins.opportunity_cost.workload_mix import MixState, WorkloadMix
from alnair.scheduler.state.cluster import Cluster


class DemandState(msgspec.Struct, frozen=True):
    """All that was learned, for snapshots: also of pods that are gone."""

    mix: MixState = MixState()
    bids: BidState = BidState()
    #: None where it was saved before this was learned.
    supply: SupplyState | None = None


class DemandObserver(Observer):
    """The workload mix, what nodes have for it, and the bid prices.

    Args:
        cluster: that pods come to; None if nothing is ever to be learned.
    """

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.mix = WorkloadMix()
        self.bids = BidPrices()
        self.supply = Supply()
        self._cluster = cluster

    def node_changed(self, node: Node, row: int) -> None:
        """Give the node the price of its like, and count what it has."""
        assert self._cluster is not None
        gpus = self._cluster.devices.gpus[row]
        self.bids.grow(self._cluster.columns.alive.size)
        self.bids.describe(row, node, gpus)
        self.supply.describe(row, node, gpus)

    def node_gone(self, name: str, row: int) -> None:
        """Take the price off the row, and what it had off the sums."""
        self.bids.describe(row, None, ())
        self.supply.describe(row, None, ())

    def pod_added(self, pod: Pod) -> None:
        """Count the pod in the mix."""
        self.mix.gather(pod)

    def pod_gone(self, pod: Pod) -> None:
        """Count that it left."""
        self.mix.leaves(pod)

    def learn(self) -> bool:
        """Bring all up to date, if the pods and nodes that came make that worth while."""
        assert self._cluster is not None
        other_mix = self.mix.learn()
        other_prices = self.bids.review(self.mix, self._cluster.columns, self._cluster.devices)
        other_supply = self.supply.review(always=other_mix or not self.mix.seen)
        return other_mix or other_prices or other_supply

    def save(self) -> DemandState | None:
        """Return all of it, if any pod came."""
        if not self.mix.seen:
            return None
        return DemandState(self.mix.state(), self.bids.state(), self.supply.known)

    def restore(self, state: DemandState) -> None:
        """Know what was saved; of a state of no pods, what the pods here say counts."""
        if state.mix.seen:
            self.mix.restore(state.mix)
            self.bids.restore(state.bids)
            self.supply.restore(state.supply)
