"""What is learned of pods as they come: what they ask for, and whom it makes scarce."""

from alnair.model.workload import Pod
from alnair.scheduler.plugins.opportunity_cost.bid_prices import KIND as BIDS
from alnair.scheduler.plugins.opportunity_cost.bid_prices import BidPrices, BidState
from alnair.scheduler.plugins.opportunity_cost.workload_mix import KIND as MIX
from alnair.scheduler.plugins.opportunity_cost.workload_mix import MixState, WorkloadMix
from alnair.scheduler.state.gpus.devices import Devices
from alnair.scheduler.state.nodes.columns import Columns
from alnair.scheduler.state.objects.api_objects import Objects


class Learned:
    """The workload mix and the bid prices; plugins that read them hear of changes as of objects'.

    Args:
        columns, devices: of the nodes that pods come to.
        objects: where changes are noted.
    """

    def __init__(self, columns: Columns, devices: Devices, objects: Objects) -> None:
        self.mix = WorkloadMix()
        self.bids = BidPrices()
        self._columns, self._devices, self._objects = columns, devices, objects

    def notice(self, pod: Pod) -> None:
        """Take note of a pod that is new."""
        self.mix.gather(pod)

    def follow(self) -> None:
        """Let plugins read mix and prices anew, if the pods noticed make that worth while."""
        if self.mix.learn():
            self._objects.touch(MIX)
        if self.bids.review(self.mix, self._columns, self._devices):
            self._objects.touch(BIDS)

    def restore(self, mix: MixState, bids: BidState) -> None:
        """Know what a snapshot says, and nothing else."""
        self.mix.restore(mix)
        self.bids.restore(bids)
        self._objects.touch(MIX)
        self._objects.touch(BIDS)
