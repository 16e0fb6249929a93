"""The plugin contract, with the extension points named as Kubernetes names them.

A plugin **compiles** itself for a pod class once (PreFilter, PreScore) into a function of rows
(Filter, Score), or says that it has nothing to do with that class. The framework caches what the
functions return and calls them again only for rows that changed in what they depend on.

A plugin that can be told something names the type of its arguments as its class attribute `Args`
(a struct of `alnair.scheduler.framework.arguments`) and is made with one of them, or with nothing
for the defaults.
"""

# mypy: disable-error-code="type-abstract"

import enum
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar, cast, runtime_checkable

import msgspec

from alnair.model.nodes import Node
from alnair.model.volumes import ClaimBinding
from alnair.model.workload import Pod, PodSpec
from alnair.scheduler.framework.relaxation import Relaxation
from alnair.scheduler.framework.score_weights import weigh
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.gpus.devices import Booking
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows
from alnair.scheduler.state.objects.api_objects import Objects, Read


class Depends(enum.Enum):
    """What of a row a function reads, hence when it must be called again."""

    #: The node object: labels, taints, allocatable.
    NODE = enum.auto()
    #: What is booked on it (and the node object).
    BOOKED = enum.auto()
    #: Pods on other rows too, such as those of its zone: see `PodsFilter` and `PodsScore`.
    PODS = enum.auto()


class Reason(msgspec.Struct, frozen=True):
    """Why a node was refused; `unresolvable` = no departure of another pod would help."""

    text: str
    unresolvable: bool = False
    #: What the API server holds contradicts itself: kube-scheduler has the code Error for this.
    error: bool = False


class Refusal(msgspec.Struct, frozen=True):
    """Why a pod is refused as such, whatever the nodes."""

    plugin: str
    text: str


class Filter(Protocol):
    """A plugin's filter for one pod class."""

    depends: Depends

    def __call__(self, rows: Rows) -> Mask:
        """Return True for each row that will do."""
        ...

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        """Return each reason and the rows that it refuses; a row may have several."""
        ...


class Score(Protocol):
    """A plugin's score for one pod class: integers, 0-100 unless `normalize` brings them there.

    What weights mean is measured in these 100; a plugin may go beyond them, but not below 0.
    It may have an attribute `instead_of`: names of score plugins that have no say beside it.
    """

    depends: Depends
    #: None, or how raw scores become 0-100 given all feasible nodes' raw scores.
    normalize: "Normalize | None"

    def __call__(self, rows: Rows) -> Column:
        """Return the raw score of each row."""
        ...


class PodsFilter(Protocol):
    """A filter that depends on `Depends.PODS`: asked for all rows when `version` has changed."""

    depends: Depends

    @property
    def version(self) -> int:
        """Return a number that changes when the filter may answer otherwise for any row."""
        ...

    def __call__(self, rows: Rows) -> Mask:
        """Return True for each row that will do."""
        ...

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        """Return each reason and the rows that it refuses; a row may have several."""
        ...


class PodsScore(Protocol):
    """A score that depends on `Depends.PODS`, and on which nodes are feasible."""

    depends: Depends
    normalize: "Normalize | None"

    def over(self, feasible: Mask) -> Column:
        """Return the raw score of all rows, given those that will do."""
        ...


class Normalize(Protocol):
    """Brings raw scores of the feasible rows to 0-100."""

    def __call__(self, raw: Column, feasible: Mask) -> Column:
        """Return the normalised score of all rows."""
        ...


class Plugin(Protocol):
    """What every plugin has; the extension points that it implements are found by their methods.

    What else is to be known of it are attributes, which it may have or not:

    - `Args`: the type of its arguments.
    - `most`: its highest score, if that is not 100.
    - `fine`: True if its scores are multiples of 1/1024 of a point, and not whole points.
    - `tie_breakers`: names of score plugins that only decide where its own score, and all others,
      are the same, for the pods that it scores.
    - `compares_requests`: True if its filter compares requests with what is free, so that victims
      must free what a pod asks for.
    - `reads_loads`: True if it decides by what GPUs are measured to do.
    - `State`, `former_entries`: see `ObserverPlugin`.
    """

    name: str


@runtime_checkable
class PreFilterPlugin(Protocol):
    """Refuses pods that no cluster could take."""

    name: str

    def pre_filter(self, spec: PodSpec) -> Refusal | None:
        """Return why the pod is refused, or None."""
        ...


@runtime_checkable
class FilterPlugin(Protocol):
    """Decides which nodes will do."""

    name: str

    def filter(self, spec: PodSpec, cluster: Cluster) -> Filter | PodsFilter | None:
        """Compile the filter for a class; None if it would pass every node."""
        ...


@runtime_checkable
class PreScorePlugin(Protocol):
    """Refuses pods whose scores cannot be computed."""

    name: str

    def pre_score(self, spec: PodSpec) -> Refusal | None:
        """Return why the pod is refused, or None; kube-scheduler reports an error there."""
        ...


@runtime_checkable
class ScorePlugin(Protocol):
    """Says which nodes are better."""

    name: str

    def score(self, spec: PodSpec, cluster: Cluster) -> Score | PodsScore | None:
        """Compile the score for a class; None if it would be 0 on every node."""
        ...


@runtime_checkable
class ObjectsPlugin(Protocol):
    """Reads API objects while it compiles."""

    name: str

    def kinds(self, spec: PodSpec) -> Sequence[str]:
        """Return the kinds whose changes mean that this class must be compiled again."""
        ...


@runtime_checkable
class PostFilterPlugin(Protocol):
    """Lets pods that fit nowhere make others leave, and says how far they may go."""

    name: str

    def candidates(self, nodes: int) -> int:
        """Return how many candidates suffice of so many nodes where victims may help."""
        ...

    def is_idle(self, pod: Pod, now: float) -> bool:
        """Return whether the pod may be evicted for being idle."""
        ...


@runtime_checkable
class NamedObjectsPlugin(Protocol):
    """Reads certain API objects while it compiles, out of kinds that change all the time."""

    name: str

    def reads(self, spec: PodSpec, objects: Objects) -> Sequence[Read]:
        """Return what means, if it changes, that this class must be compiled again."""
        ...


@runtime_checkable
class ReservePlugin(Protocol):
    """Chooses devices on the chosen node."""

    name: str

    def reserve(
        self, spec: PodSpec, row: int, cluster: Cluster, gpu_scores: Column | None = None
    ) -> tuple[Booking, ...] | None:
        """Return what to book of the row's GPUs; None if it cannot be had after all.

        Args:
            spec: the pod class.
            row: of the chosen node.
            cluster: its state.
            gpu_scores: (GPUs per node,), what plugins score the row's GPUs, the more the better,
                below 0 where the pod must not go; None if no plugin scores GPUs.
        """
        ...


@runtime_checkable
class GpuScorePlugin(Protocol):
    """Says which GPUs of a node are better for a slice, or will not do."""

    name: str

    def gpus(self, spec: PodSpec, cluster: Cluster) -> Callable[[Rows], Column] | None:
        """Compile the scores of GPUs, 0-100, below 0 where the pod must not go; None = no say.

        The function returns the shape (GPUs per node, rows).
        """
        ...


@runtime_checkable
class GpuReasonPlugin(Protocol):
    """Says in words by what it judges a GPU that a pod shares."""

    name: str

    def why_gpu(self, spec: PodSpec, cluster: Cluster, row: int, slot: int) -> str:
        """Return it of a GPU that the pod is not on; empty if there is nothing to say."""
        ...


@runtime_checkable
class QuickPlugin(Protocol):
    """Says what its filter compares, so that it need not be run for pods that ask for more.

    Parked pods are asked about at every change of the cluster, and there may be thousands of
    classes: with this, all of them are compared with what became free at once.
    """

    name: str

    def needs(self, spec: PodSpec) -> Iterable[tuple[Hashable, float]]:
        """Return how much of what a node must have: with less of any, the filter refuses it."""
        ...

    def amount(self, what: Hashable, rows: Rows, cluster: Cluster) -> Column:
        """Return how much each row has of what `needs` named; the same whatever the arguments."""
        ...


@runtime_checkable
class ClaimPlugin(Protocol):
    """Chooses storage for claims that wait for a node."""

    name: str
    #: Seconds that a placed pod waits for it.
    patience: float

    def claims(self, spec: PodSpec, row: int, cluster: Cluster) -> tuple[ClaimBinding, ...]:
        """Return what is to be written, for a node that passed the filter, before the Binding."""
        ...


class Observer:
    """Watches the nodes and pods of one engine for a plugin: the base class, which does nothing.

    Everything comes in the order of events. What exists at the start comes in any order, and
    `learn` follows once all of it is there. What is learned may depend on nothing else.
    """

    @property
    def learned(self) -> Any:
        """What the plugin reads of it, as `cluster.observations.of(name)`."""
        return self

    def node_changed(self, node: Node, row: int) -> None:
        """Take note of a node that came or changed; its row says so already.

        Heartbeats and changes of its images alone are not told.
        """

    def node_gone(self, name: str, row: int) -> None:
        """Take note of a node that is about to leave; another one may get its row."""

    def pod_added(self, pod: Pod) -> None:
        """Take note of a pod that is new: one of ours, or another scheduler's on its node."""

    def pod_gone(self, pod: Pod) -> None:
        """Take note of a pod that ended or was deleted."""

    def learn(self) -> bool:
        """Make up what is learned, once per step before decisions.

        Returns:
            Whether filters and scores must be compiled anew. This costs all classes of the
            profiles with the plugin, so say so rarely.
        """
        return False

    def save(self) -> Any:
        """Return all that must outlive the engine, a value of `State`; None if there is nothing."""
        return None

    def restore(self, state: Any) -> None:
        """Know what was saved, and nothing else; pods and nodes have been told before."""


@runtime_checkable
class ObserverPlugin(Protocol):
    """Learns from nodes and pods that come and go.

    An engine has one observer per plugin name, made by the first profile that has the plugin, and
    all its profiles share it: what is learned must not depend on arguments. An engine without such
    a plugin watches nothing.

    Its class names the type of what observers save as its attribute `State` (any that msgspec can
    decode); without one they get plain values back. Snapshots hold it by the plugin's name.
    `former_entries` names entries of older snapshots that are fields of the state by now.
    """

    name: str

    def observe(self, cluster: Cluster) -> Observer:
        """Return what watches this cluster, of which nothing is known yet."""
        ...


@runtime_checkable
class RelaxationPlugin(Protocol):
    """Knows single changes that may let a pod fit where its filter refuses: advice for people."""

    name: str

    def relaxations(self, spec: PodSpec, cluster: Cluster) -> Iterable[Relaxation]:
        """Return the changes; whether one helps is tried, so it may be a guess."""
        ...


@runtime_checkable
class QueueSortPlugin(Protocol):
    """Orders the queue."""

    name: str

    def key(self, pod: Pod) -> tuple[float, ...]:
        """Return the sort key; smaller goes first."""
        ...


@runtime_checkable
class PreEnqueuePlugin(Protocol):
    """Holds pods back from the queue."""

    name: str

    def pre_enqueue(self, pod: Pod) -> str:
        """Return why the pod must wait, or an empty text."""
        ...


#: Whether plugins of a class, with attributes of their own, have an extension point.
_HAS: Final[dict[tuple[type, frozenset[str], type], bool]] = {}
_Point = TypeVar("_Point")


def _of_kind(plugins: Iterable[Plugin], point: type[_Point]) -> list[_Point]:
    # Python 3.11 takes 20 us to ask a protocol; a profile asks 300 times, for the same classes.
    found: list[_Point] = []
    for plugin in plugins:
        key = type(plugin), frozenset(getattr(plugin, "__dict__", ())), point
        if key not in _HAS:
            _HAS[key] = isinstance(plugin, point)
        if _HAS[key]:
            found.append(cast("_Point", plugin))
    return found


class Profile:
    """A scheduler name, its plugins by extension point, and its scores' weights (1 if absent)."""

    def __init__(
        self, scheduler: str, plugins: Iterable[Plugin], weights: Mapping[str, int] | None = None
    ) -> None:
        self.scheduler = scheduler
        self.plugins = tuple(plugins)
        self.weights = dict(weights or {})
        self._weighed: dict[
            tuple[tuple[str, ...], frozenset[str]], tuple[tuple[float, ...], float]
        ] = {}
        self.pre_filters = _of_kind(self.plugins, PreFilterPlugin)
        self.filters = _of_kind(self.plugins, FilterPlugin)
        self.pre_scores = _of_kind(self.plugins, PreScorePlugin)
        self.scores = _of_kind(self.plugins, ScorePlugin)
        self.name_readers = _of_kind(self.plugins, NamedObjectsPlugin)
        self.readers = _of_kind(self.plugins, ObjectsPlugin)
        self.observers = _of_kind(self.plugins, ObserverPlugin)
        self.relaxers = _of_kind(self.plugins, RelaxationPlugin)
        self.quick = _of_kind(self.plugins, QuickPlugin)
        self.reserves = _of_kind(self.plugins, ReservePlugin)
        self.gpu_scores = _of_kind(self.plugins, GpuScorePlugin)
        self.gpu_reasons = _of_kind(self.plugins, GpuReasonPlugin)
        self.claimers = _of_kind(self.plugins, ClaimPlugin)
        self.pre_enqueues = _of_kind(self.plugins, PreEnqueuePlugin)
        self.sorts = _of_kind(self.plugins, QueueSortPlugin)
        self.post_filter = next(iter(_of_kind(self.plugins, PostFilterPlugin)), None)
        if len(self.sorts) != 1:
            found = ", ".join(p.name for p in self.sorts) or "none"
            raise ValueError(
                f"profile {scheduler}: exactly one plugin sorts the queue, found {found}"
            )

    def weigh(
        self, scorers: Sequence[ScorePlugin], silent: frozenset[str]
    ) -> tuple[tuple[float, ...], float]:
        """Return what each of these plugins' scores counts, as `score_weights.weigh` does."""
        key = tuple([plugin.name for plugin in scorers]), silent
        found = self._weighed.get(key)
        if found is None:
            found = self._weighed[key] = weigh(scorers, self.weights, silent)
        return found

    @property
    def reads_loads(self) -> bool:
        """Whether a plugin decides by what GPUs are measured to do."""
        return any(getattr(p, "reads_loads", False) for p in self.plugins)

    def kinds(self) -> frozenset[str]:
        """Return the kinds of objects that are read whatever a pod asks for."""
        return frozenset(kind for reader in self.readers for kind in reader.kinds(PodSpec()))
