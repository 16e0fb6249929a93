"""The evaluations that are kept: one per profile and pod class, the least recently used go."""

from collections import OrderedDict
from typing import Final

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.state.cluster import Cluster

#: Each evaluation holds some 50 bytes per node: 256 of them at 5,000 nodes are 64 MB.
_KEPT: Final = 256


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
        schema = self._cluster.columns.schema
        if schema != self._schema:
            self._kept.clear()
            self._schema = schema
        key = (profile.scheduler, spec)
        evaluation = self._kept.get(key)
        if evaluation is None or evaluation.outdated():
            evaluation = self._kept[key] = Evaluation(spec, profile, self._cluster)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        if evaluation.refusal is None:
            evaluation.refresh()
        return evaluation
