"""The published policies, by the names that people choose them by."""

import random

from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.published.fragmentation import WorkloadClass
from alnair.scheduler.published.profiles import POLICIES, published


class UnknownPolicyError(Exception):
    """There is no policy of this name; the message lists those that there are."""


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
