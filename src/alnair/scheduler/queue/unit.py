"""The unit of the queue: a gang, or a lone pod; where it is, and what it waits with."""

import enum

from alnair.model.workload import PodSpec
from alnair.scheduler.state.accounts import Record

#: Smaller goes first; equals go in the order in which they came.
SortKey = tuple[float | str, ...]
#: Pods that have the same chances: scheduler name, and what scheduling reads of them.
ClassKey = tuple[str, PodSpec]


class Place(enum.Enum):
    """Where a unit is; NOT_QUEUED is in none of them."""

    NOT_QUEUED = enum.auto()
    ACTIVE = enum.auto()
    BACKOFF = enum.auto()
    PARKED = enum.auto()


class Unit:
    """Pods that are tried together."""

    __slots__ = (
        "attempts",
        "gang",
        "key",
        "not_before",
        "order",
        "place",
        "pods",
        "probes_class",
        "sort",
        "sort_by_age",
        "ticket",
        "waited",
        "waiting",
    )

    def __init__(self, key: str, *, gang: bool = False) -> None:
        self.key = key
        self.gang = gang
        self.pods: dict[str, Record] = {}
        self.sort: SortKey = ()
        #: Its place in the queue whatever became of its tries: who waits longest.
        self.sort_by_age: SortKey = ()
        #: When it came, compared with other units; -1 before.
        self.order = -1
        self.attempts = 0
        self.place = Place.NOT_QUEUED
        #: Invalidates older heap entries of this unit.
        self.ticket = 0
        #: What it waits with while parked; None = only news about itself helps.
        self.waiting: WaitingClass | None = None
        #: What it waited with last, which may be over.
        self.waited: WaitingClass | None = None
        #: While it backs off, or is parked as a gang: it is not tried before this time.
        self.not_before = 0.0
        #: It was woken to find out whether pods of this class fit again.
        self.probes_class: ClassKey | None = None

    @property
    def namespace(self) -> str:
        """The namespace of its pods."""
        return next((r.pod.namespace for r in self.pods.values()), "")

    @property
    def name(self) -> str:
        """What people call it."""
        first = next((r.pod for r in self.pods.values()), None)
        if self.gang or first is None:
            return self.key.replace("gang:", "gang ")
        return f"pod {first.namespace}/{first.name}"

    def is_active(self, ticket: int) -> bool:
        """Return whether a heap entry with this ticket still means that it is to be tried."""
        return ticket == self.ticket and self.place is Place.ACTIVE


class WaitingClass:
    """Parked units that the same changes help."""

    __slots__ = ("class_key", "count", "heap", "key", "number")

    def __init__(self, key: ClassKey | str, class_key: ClassKey | None, number: int) -> None:
        #: What it waits under: the class of lone pods, or the key of a gang.
        self.key = key
        #: Whose chances decide; None = any change may help.
        self.class_key = class_key
        self.heap: list[tuple[SortKey, int, int, Unit]] = []
        self.count = 0
        #: Its place in tables of all that wait; another one gets it when this one is gone.
        self.number = number
