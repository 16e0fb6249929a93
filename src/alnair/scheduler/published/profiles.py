"""A profile per published policy, and ours: the constraints of the protocol and one score."""

from collections.abc import Callable, Sequence
from typing import Final, Literal, get_args

from alnair.scheduler.framework.extension_points import Plugin, Profile
from alnair.scheduler.plugins.gpu_share.plugin import GpuShare
from alnair.scheduler.plugins.opportunity_cost.plugin import OpportunityCost
from alnair.scheduler.plugins.priority_sort import PrioritySort
from alnair.scheduler.published.best_fit import PublishedBestFit
from alnair.scheduler.published.clustering import PublishedClustering
from alnair.scheduler.published.dot_product import PublishedDotProd
from alnair.scheduler.published.fgd import PublishedFGD
from alnair.scheduler.published.fragmentation import WorkloadClass
from alnair.scheduler.published.free_resources import ResourcesFit
from alnair.scheduler.published.packing import PublishedPacking
from alnair.scheduler.published.random_fit import PublishedRandom

Policy = Literal[
    "opportunitycost", "fgd", "bestfit", "dotprod", "packing", "clustering", "firstfit", "random"
]
POLICIES: Final[tuple[Policy, ...]] = get_args(Policy)


def published(
    policy: Policy, workload: Sequence[WorkloadClass], draw: Callable[[int], int]
) -> Profile:
    """Return the profile of a policy, under the policy's name.

    Args:
        policy: OpportunityCost is our own; FirstFit is the constraints alone.
        workload: that FGD is told of beforehand.
        draw: gives Random its numbers, from 0 up to below the argument.
    """
    scores: dict[Policy, Callable[[], Plugin]] = {
        "opportunitycost": OpportunityCost,
        "fgd": lambda: PublishedFGD(workload),
        "bestfit": PublishedBestFit,
        "dotprod": PublishedDotProd,
        "packing": PublishedPacking,
        "clustering": PublishedClustering,
        "random": lambda: PublishedRandom(draw),
    }
    own = [scores[policy]()] if policy in scores else []
    return Profile(policy, [PrioritySort(), ResourcesFit(), GpuShare(), *own])
