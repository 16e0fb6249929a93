"""Whether a pod that holds GPUs and does not use them shall make room, where that was asked for.

The pod's own word goes before its namespace's, and nobody is evicted who was not warned before.
"""

from typing import Final, Literal

import msgspec

#: What the annotation or the label says.
ENABLED: Final = "enabled"
NEVER: Final = "never"


class IdlePod(msgspec.Struct, frozen=True):
    """What counts of a pod.

    Attributes:
        uid: Of the pod.
        namespace: Where it is.
        name: What it is called there.
        node: Where it runs.
        idle_since: Since when it has not used its GPUs, seconds since the epoch; 0: it does, or
            that is not known.
        choice: What it says itself; empty: what its namespace says.
        reclaimable: What it says on making room for others; see `alnair.model.names.RECLAIMABLE`.
    """

    uid: str
    namespace: str
    name: str
    node: str = ""
    idle_since: float = 0.0
    choice: str = ""
    reclaimable: str = ""


def idle_eviction(
    pod: IdlePod,
    *,
    of_namespace: str,
    warned: float | None,
    now: float,
    after: float,
    grace: float,
) -> Literal["keep", "warn", "wait", "evict"]:
    """Tell what is to be done.

    Args:
        pod: The pod.
        of_namespace: What its namespace says.
        warned: When it was told, seconds since the epoch; None: it was not, in this idleness.
        now: Seconds since the epoch.
        after: Seconds of idleness after which it is told.
        grace: Seconds from then on until it is evicted.
    """
    is_asked = (pod.choice or of_namespace) == ENABLED and pod.reclaimable != NEVER
    if not is_asked or not pod.idle_since or now - pod.idle_since < after:
        return "keep"
    if warned is None:
        return "warn"
    return "evict" if now - warned >= grace else "wait"
