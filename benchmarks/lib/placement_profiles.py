"""The policies of `placement.py` as profiles: published ones, and those of a configuration file."""

from collections.abc import Sequence
from pathlib import Path

from alnair.configuration.profile_assembly import find_profile, load_profiles
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.plugins.opportunity_cost.plugin import (
    OpportunityCost,
    OpportunityCostArguments,
)
from alnair.scheduler.published.fragmentation import target_workload
from alnair.scheduler.published.profiles import POLICIES
from alnair.sim.placement import policies
from alnair.traces.openb import TracePod

#: OpportunityCost as it was before it told scarce cores and memory from plenty of them.
EVEN = "opportunitycost-even"


def profile_of(name: str, config: str, pods: Sequence[TracePod], seed: int) -> Profile:
    if name == EVEN:
        ours = policies.policy("opportunitycost", (), seed)
        even = OpportunityCost(OpportunityCostArguments(least_softness=0.2))
        others = [plugin for plugin in ours.plugins if plugin.name != even.name]
        return Profile(name, [*others, even])
    if name in POLICIES:
        return policies.policy(name, target_workload(pods), seed)
    return find_profile(load_profiles(Path(config) if config else None)[1], name)
