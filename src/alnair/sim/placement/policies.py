"""What places pods in a simulation: a published policy, or a profile of the scheduler."""

import random
from pathlib import Path

from alnair.configuration import scheduler_file as conf
from alnair.configuration.profile_assembly import assemble
from alnair.scheduler.framework.contract import Profile
from alnair.scheduler.published.fragmentation import WorkloadClass
from alnair.scheduler.published.profiles import POLICIES, published


class UnknownPolicyError(Exception):
    """There is no policy or profile of this name; the message lists those that there are."""


def policy(name: str, workload: tuple[WorkloadClass, ...], seed: int) -> Profile:
    """Return the profile of a published policy, or of ours alone.

    Args:
        name: of the policy.
        workload: that FGD knows beforehand.
        seed: of what Random draws.

    Raises:
        UnknownPolicyError: There is none of this name.
    """
    found = next((known for known in POLICIES if known == name), None)
    if found is None:
        known = ", ".join(POLICIES)
        raise UnknownPolicyError(f"{name!r} is not a policy; known are {known}")
    return published(found, workload, random.Random(f"policy/{seed}").randrange)


def profile(name: str | None, config: Path | None) -> Profile:
    """Return a built-in profile, or one of a configuration file; the first if none is named.

    Raises:
        ConfigurationError: The file cannot be used.
        UnknownPolicyError: There is none of this name.
    """
    wanted = conf.load(config)
    profiles = assemble(wanted, str(config or "command line")).profiles()
    for each in profiles:
        if name in (each.scheduler, None):
            return each
    known = ", ".join(each.scheduler for each in profiles)
    raise UnknownPolicyError(f"there is no profile {name!r}; known are {known}")
