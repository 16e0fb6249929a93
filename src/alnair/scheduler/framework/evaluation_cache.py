"""The evaluations that are kept: one per profile and pod class, the least recently used go."""

from collections import OrderedDict
from typing import Final

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.state.cluster import Cluster

#: So many are kept on any cluster, and more where all fit into so many bytes: each takes some per
#: node, and some whatever the nodes. A queue with more classes than are kept computes each anew,
#: over all nodes, whenever its turn comes.
_FEWEST: Final = 256
_MOST: Final = 64 << 20
_PER_NODE: Final = 50
_EACH: Final = 16 << 10


class Evaluations:
    """Evaluations by profile and class."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._kept: OrderedDict[tuple[str, PodSpec], Evaluation] = OrderedDict()
        self._schema = cluster.columns.schema

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, spec: PodSpec, profile: Profile) -> Evaluation:
        """Return the class's evaluation, brought up to date."""
        evaluation = self.compiled(spec, profile)
        if evaluation.refusal is None:
            evaluation.refresh()
        return evaluation

    def compiled(self, spec: PodSpec, profile: Profile) -> Evaluation:
        """Return the class's evaluation as somebody left it, or new and empty."""
        schema = self._cluster.columns.schema
        if schema != self._schema:
            self._kept.clear()
            self._schema = schema
        key = (profile.scheduler, spec)
        evaluation = self._kept.get(key)
        if evaluation is None or evaluation.outdated():
            evaluation = self._kept[key] = Evaluation(spec, profile, self._cluster)
            most = kept(self._cluster.columns.n)
            while len(self._kept) > most:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return evaluation


def kept(nodes: int) -> int:
    """Return how many evaluations are kept on so many nodes."""
    return max(_FEWEST, _MOST // (_EACH + _PER_NODE * nodes))
