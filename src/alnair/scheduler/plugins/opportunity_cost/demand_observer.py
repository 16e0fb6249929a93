"""What is learned of pods as they come: what they ask for, and whom it makes scarce."""

import msgspec

from alnair.model.nodes import Node
from alnair.model.workload import Pod
from alnair.scheduler.framework.extension_points import Observer
from alnair.scheduler.plugins.opportunity_cost.bid_prices import BidPrices, BidState
from alnair.scheduler.plugins.opportunity_cost.workload_mix import MixState, WorkloadMix
from alnair.scheduler.state.cluster import Cluster


class DemandState(msgspec.Struct, frozen=True):
    """All that was learned, for snapshots: also of pods that are gone."""

    mix: MixState = MixState()
    bids: BidState = BidState()


class DemandObserver(Observer):
    """The workload mix and the bid prices.

    Args:
        cluster: that pods come to; None if nothing is ever to be learned.
    """

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.mix = WorkloadMix()
        self.bids = BidPrices()
        self._cluster = cluster

    def node_changed(self, node: Node, row: int) -> None:
        """Give the node the price of its like."""
        assert self._cluster is not None
        self.bids.grow(self._cluster.columns.alive.size)
        self.bids.describe(row, node, self._cluster.devices.gpus[row])

    def node_gone(self, name: str, row: int) -> None:
        """Take the price off the row."""
        self.bids.describe(row, None, ())

    def pod_added(self, pod: Pod) -> None:
        """Count the pod in the mix."""
        self.mix.gather(pod)

    def learn(self) -> bool:
        """Bring mix and prices up to date, if the pods that came make that worth while."""
        assert self._cluster is not None
        other_mix = self.mix.learn()
        other_prices = self.bids.review(self.mix, self._cluster.columns, self._cluster.devices)
        return other_mix or other_prices

    def save(self) -> DemandState | None:
        """Return mix and prices, if any pod came."""
        return DemandState(self.mix.state(), self.bids.state()) if self.mix.seen else None

    def restore(self, state: DemandState) -> None:
        """Know what was saved; of a state of no pods, what the pods here say counts."""
        if state.mix.seen:
            self.mix.restore(state.mix)
            self.bids.restore(state.bids)
