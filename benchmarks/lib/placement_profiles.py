"""The policies of `placement.py` as profiles: published ones, and those of a configuration file."""

from collections.abc import Sequence
from pathlib import Path

from alnair.configuration.profile_assembly import find_profile, load_profiles
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.published.fragmentation import target_workload
from alnair.scheduler.published.profiles import POLICIES
from alnair.sim.placement import policies
from alnair.traces.openb import TracePod


def profile_of(name: str, config: str, pods: Sequence[TracePod], seed: int) -> Profile:
    if name in POLICIES:
        return policies.policy(name, target_workload(pods), seed)
    return find_profile(load_profiles(Path(config) if config else None)[1], name)
