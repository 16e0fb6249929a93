"""DefaultPreemption: whether and how far a pod may make others leave.

The search itself is `alnair.scheduler.preemption.victim_search`; this plugin is how a profile turns
it on, and what it can be told. Source of the first two arguments: kube-scheduler's plugin of this
name.
"""

import math
from typing import Literal

from alnair.model.workload import Pod
from alnair.scheduler.framework.arguments import Arguments, out_of_range


class PreemptionArgs(Arguments, frozen=True):
    """What the plugin can be told."""

    #: Of the nodes where victims may help, this share and at least this number suffice as
    #: candidates, unless the best is known earlier.
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100
    #: A pod whose GPUs have been idle for so long is a victim before all others.
    idle_seconds: float = 600.0
    #: Which idle pods: those that are annotated so, all but those annotated `never`, or none.
    reclaim_idle: Literal["opt-in", "always", "never"] = "opt-in"

    def problems(self) -> list[str]:
        """Return what is out of range."""
        percentage, absolute = (
            self.min_candidate_nodes_percentage,
            self.min_candidate_nodes_absolute,
        )
        found = out_of_range("minCandidateNodesPercentage", percentage, 0, 100)
        found += out_of_range("minCandidateNodesAbsolute", absolute, 0, math.inf)
        if not percentage and not absolute:
            found.append(
                "minCandidateNodesPercentage and minCandidateNodesAbsolute: both are 0, "
                "write a number above 0 for one of them"
            )
        return found + out_of_range("idleSeconds", self.idle_seconds, 0, math.inf)


class DefaultPreemption:
    """Lets pods that fit nowhere evict pods of lower priority, and idle ones."""

    name = "DefaultPreemption"
    Args = PreemptionArgs

    def __init__(self, args: PreemptionArgs = PreemptionArgs()) -> None:  # noqa: B008 - frozen
        self.args = args

    def candidates(self, nodes: int) -> int:
        """Return how many candidates suffice of so many nodes where victims may help."""
        share = nodes * self.args.min_candidate_nodes_percentage // 100
        return min(nodes, max(share, self.args.min_candidate_nodes_absolute))

    def is_idle(self, pod: Pod, now: float) -> bool:
        """Return whether the pod may be evicted for being idle."""
        if not pod.idle_since or now - pod.idle_since < self.args.idle_seconds:
            return False
        if self.args.reclaim_idle == "always":
            return pod.reclaimable != "never"
        return self.args.reclaim_idle == "opt-in" and pod.reclaimable == "idle"
