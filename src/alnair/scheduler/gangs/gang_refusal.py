"""What the refusal of a gang says: how many pods must start together, and for how many is room.

The scheduler writes it to the pods; whoever keeps the PodGroup's status reads it back there. Both
by this module, so that they mean the same.
"""

import re
from typing import Final

import msgspec

#: What preemption adds to a refusal while it makes room: see `alnair.scheduler.preemption`.
EVICTING: Final = " preemption: evicting "
WAITING_FOR_VICTIMS: Final = " preemption: waiting for pods to leave."

_FIT: Final = re.compile(r"gang \S+: (\d+) of the (\d+) pods that must start together fit; ")
_UNTRIED: Final = re.compile(
    r"gang \S+: none of the (\d+) pods that must start together is tried; "
)
_NOT_READY: Final = re.compile(
    r"gang \S+ needs \d+ pods and has \d+: |PodGroup \S+ (does not|cannot)"
)


class GangRefusal(msgspec.Struct, frozen=True):
    """What the scheduler found when it tried a gang.

    Attributes:
        needed: pods that had to start together then; None if it does not say, as for a single one.
        room: for so many of them there was room; None if it was not looked.
        evicting: room is being made, by pods that leave.
    """

    needed: int | None = None
    room: int | None = None
    evicting: bool = False


def too_few(gang: tuple[str, str], room: int, needed: int, why: str) -> str:
    """Return the refusal of a gang that fits in part."""
    name = "{}/{}".format(*gang)
    return f"gang {name}: {room} of the {needed} pods that must start together fit; {why}"


def untried(gang: tuple[str, str], needed: int, why: str) -> str:
    """Return the refusal of a gang of which no pod need be tried."""
    name = "{}/{}".format(*gang)
    return f"gang {name}: none of the {needed} pods that must start together is tried; {why}"


def read_refusal(message: str) -> GangRefusal | None:
    """Return what a pod's refusal says of its gang; None if the gang was not tried at all."""
    evicting = EVICTING in message or WAITING_FOR_VICTIMS in message
    if found := _FIT.match(message):
        return GangRefusal(int(found[2]), int(found[1]), evicting)
    if found := _UNTRIED.match(message):
        return GangRefusal(int(found[1]), None, evicting)
    if _NOT_READY.match(message):
        return None
    return GangRefusal(None, 0, evicting)


def is_not_ready(message: str) -> bool:
    """Whether a pod is refused because its PodGroup or others of its gang are not there yet."""
    return _NOT_READY.match(message) is not None


def figures(message: str) -> str:
    """Return the numbers of a gang's refusal that are news in themselves; empty without any."""
    found = _FIT.match(message) or _UNTRIED.match(message)
    return "/".join(found.groups()) if found else ""
