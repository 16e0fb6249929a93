"""The policies of `placement.py` as profiles: published ones, and those of a configuration file."""

from collections.abc import Sequence
from pathlib import Path

from alnair.cli.simulate import policies
from alnair.scheduler.framework.contract import Profile
from alnair.scheduler.published.fragmentation import target_workload
from alnair.scheduler.published.profiles import POLICIES
from alnair.traces.openb import TracePod


def profile_of(name: str, config: str, pods: Sequence[TracePod], seed: int) -> Profile:
    if name in POLICIES:
        return policies.policy(name, target_workload(pods), seed)
    return policies.profile(name, Path(config) if config else None)
