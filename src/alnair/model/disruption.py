"""How many of which pods may be evicted at a time."""

import msgspec

from alnair.model.workload import LabelSelector


class DisruptionBudget(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget: of the pods that it selects, `allowed` more may go now."""

    namespace: str
    name: str
    selector: LabelSelector | None = None
    allowed: int = 0
    #: Names of pods whose eviction the API server has already counted.
    disrupted: frozenset[str] = frozenset()
