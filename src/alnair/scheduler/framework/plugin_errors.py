"""Keeps the errors of other people's plugins where they belong: with the pods of their profile.

A guarded plugin that raises, or answers something impossible, refuses what it was asked about (a
filter, reserving) or has no opinion (a score). So its pods wait and say why, and all others go on.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec
import numpy as np

from alnair.model.nodes import Node
from alnair.model.workload import Pod, PodSpec
from alnair.scheduler.framework.extension_points import Depends, Observer, Plugin, Reason, Refusal
from alnair.scheduler.framework.relaxation import Relaxation
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.gpus.devices import Booking
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows
from alnair.scheduler.state.objects.api_objects import Objects, Read

T = TypeVar("T")

#: Extension points whose answers are guarded. Others are passed on as they are: `claims` has no
#: answer that would do no harm.
_GUARDED: Final = (
    "pre_filter",
    "filter",
    "pre_score",
    "score",
    "gpus",
    "reserve",
    "key",
    "pre_enqueue",
    "kinds",
    "reads",
    "candidates",
    "is_idle",
    "observe",
    "relaxations",
    "why_gpu",
)


class Faults:
    """What a plugin did wrong, as one sentence for people.

    Args:
        subject: The plugin and its package, such as `plugin Rack of acme-plugins 1.2`.
        tell: Is told each sentence once.
    """

    def __init__(self, subject: str, tell: Callable[[str], None]) -> None:
        self._subject = subject
        self._tell = tell
        self._logged: set[str] = set()

    def note(self, where: str, error: Exception) -> str:
        """Return the sentence."""
        text = f"{self._subject} failed in {where}: {type(error).__name__}: {error}"
        if text not in self._logged:
            self._logged.add(text)
            self._tell(text)
        return text

    def attempt(self, where: str, ask: Callable[[], T], instead: Callable[[str], T]) -> T:
        """Return the plugin's answer, or what stands in for it, given the sentence."""
        try:
            return ask()
        except Exception as error:  # noqa: BLE001 - whatever other people's code raises
            return instead(self.note(where, error))


class Guarded:
    """A plugin whose errors are answers; it has the extension points of the plugin within."""

    def __init__(self, plugin: Plugin, faults: Faults) -> None:
        self.name = plugin.name
        self._plugin: Any = plugin
        self._faults = faults
        # Which extension points a plugin takes part in is told by its methods.
        for point in dir(plugin):
            if point in _GUARDED:
                setattr(self, point, getattr(self, f"_{point}"))
            elif not point.startswith("_") and point != "name":
                setattr(self, point, getattr(plugin, point))

    def _pre_filter(self, spec: PodSpec) -> Refusal | None:
        answer: Refusal | None = self._faults.attempt(
            "pre_filter",
            lambda: self._plugin.pre_filter(spec),
            lambda fault: Refusal(self.name, fault),
        )
        return answer

    def _filter(self, spec: PodSpec, cluster: Cluster) -> "_GuardedFilter | None":
        try:
            compiled = self._plugin.filter(spec, cluster)
        except Exception as error:  # noqa: BLE001
            fault = self._faults.note("filter", error)
            return _GuardedFilter(None, self._faults, cluster, fault)
        return None if compiled is None else _GuardedFilter(compiled, self._faults, cluster)

    def _pre_score(self, spec: PodSpec) -> Refusal | None:
        answer: Refusal | None = self._faults.attempt(
            "pre_score",
            lambda: self._plugin.pre_score(spec),
            lambda fault: Refusal(self.name, fault),
        )
        return answer

    def _score(self, spec: PodSpec, cluster: Cluster) -> "_GuardedScore | None":
        compiled = self._faults.attempt(
            "score", lambda: self._plugin.score(spec, cluster), lambda _: None
        )
        return None if compiled is None else _GuardedScore(compiled, self._faults, cluster)

    def _gpus(self, spec: PodSpec, cluster: Cluster) -> Callable[[Rows], Column] | None:
        compiled = self._faults.attempt(
            "gpus", lambda: self._plugin.gpus(spec, cluster), lambda _: None
        )
        if compiled is None:
            return None

        def scores(rows: Rows) -> Column:
            shape = cluster.devices.model[:, rows].shape
            try:
                found: Column = compiled(rows)
                if found.shape != shape or not np.isfinite(found).all():
                    raise ValueError(f"it must answer finite numbers in the shape {shape}")
            except Exception as error:  # noqa: BLE001
                self._faults.note("its scores of GPUs", error)
                return np.zeros(shape)
            return found

        return scores

    def _why_gpu(self, spec: PodSpec, cluster: Cluster, row: int, slot: int) -> str:
        answer: str = self._faults.attempt(
            "why_gpu", lambda: self._plugin.why_gpu(spec, cluster, row, slot), lambda fault: fault
        )
        return answer

    def _reserve(
        self, spec: PodSpec, row: int, cluster: Cluster, gpu_scores: Column | None = None
    ) -> tuple[Booking, ...] | None:
        answer: tuple[Booking, ...] | None = self._faults.attempt(
            "reserve", lambda: self._plugin.reserve(spec, row, cluster, gpu_scores), lambda _: None
        )
        return answer

    def _key(self, pod: Pod) -> tuple[float, ...]:
        answer: tuple[float, ...] = self._faults.attempt(
            "key", lambda: self._plugin.key(pod), lambda _: (0.0,)
        )
        return answer

    def _pre_enqueue(self, pod: Pod) -> str:
        answer: str = self._faults.attempt(
            "pre_enqueue", lambda: self._plugin.pre_enqueue(pod), lambda fault: fault
        )
        return answer

    def _kinds(self, spec: PodSpec) -> Sequence[str]:
        answer: Sequence[str] = self._faults.attempt(
            "kinds", lambda: self._plugin.kinds(spec), lambda _: ()
        )
        return answer

    def _reads(self, spec: PodSpec, objects: Objects) -> Sequence[Read]:
        answer: Sequence[Read] = self._faults.attempt(
            "reads", lambda: self._plugin.reads(spec, objects), lambda _: ()
        )
        return answer

    def _candidates(self, nodes: int) -> int:
        answer: int = self._faults.attempt(
            "candidates", lambda: int(self._plugin.candidates(nodes)), lambda _: nodes
        )
        return answer

    def _is_idle(self, pod: Pod, now: float) -> bool:
        answer: bool = self._faults.attempt(
            "is_idle", lambda: bool(self._plugin.is_idle(pod, now)), lambda _: False
        )
        return answer

    def _observe(self, cluster: Cluster) -> "_GuardedObserver":
        watching: Observer = self._faults.attempt(
            "observe", lambda: self._plugin.observe(cluster), lambda _: Observer()
        )
        return _GuardedObserver(watching, self._faults)

    def _relaxations(self, spec: PodSpec, cluster: Cluster) -> Sequence[Relaxation]:
        answer: Sequence[Relaxation] = self._faults.attempt(
            "relaxations", lambda: list(self._plugin.relaxations(spec, cluster)), lambda _: ()
        )
        return answer


class _GuardedObserver(Observer):
    """An observer that misses what it fails at, and goes on."""

    def __init__(self, watching: Observer, faults: Faults) -> None:
        self._watching = watching
        self._faults = faults

    @property
    def learned(self) -> Any:
        return self._attempt("learned", lambda: self._watching.learned)

    def node_changed(self, node: Node, row: int) -> None:
        self._attempt("node_changed", lambda: self._watching.node_changed(node, row))

    def node_gone(self, name: str, row: int) -> None:
        self._attempt("node_gone", lambda: self._watching.node_gone(name, row))

    def pod_added(self, pod: Pod) -> None:
        self._attempt("pod_added", lambda: self._watching.pod_added(pod))

    def pod_gone(self, pod: Pod) -> None:
        self._attempt("pod_gone", lambda: self._watching.pod_gone(pod))

    def learn(self) -> bool:
        return bool(self._attempt("learn", lambda: bool(self._watching.learn())))

    def save(self) -> Any:
        """Return its state, in plain values: what cannot be encoded would spoil a snapshot."""
        return self._attempt("save", lambda: msgspec.to_builtins(self._watching.save()))

    def restore(self, state: Any) -> None:
        self._attempt("restore", lambda: self._watching.restore(state))

    def _attempt(self, where: str, ask: Callable[[], Any]) -> Any:
        return self._faults.attempt(f"its observer's {where}", ask, lambda _: None)


class _GuardedFilter:
    def __init__(self, compiled: Any, faults: Faults, cluster: Cluster, fault: str = "") -> None:
        self.depends = Depends.BOOKED if compiled is None else compiled.depends
        self._compiled = compiled
        self._faults = faults
        self._cluster = cluster
        self._fault = fault

    @property
    def version(self) -> int:
        """The plugin's own word, or what changes with every pod."""
        try:
            return int(self._compiled.version)
        except Exception as error:  # noqa: BLE001
            self._fault = self._faults.note("version", error)
            return self._cluster.pods.version

    def __call__(self, rows: Rows) -> Mask:
        size = _size(rows)
        if self._compiled is not None:
            try:
                mask = self._compiled(rows)
                _require(mask, size, bool)
            except Exception as error:  # noqa: BLE001
                self._fault = self._faults.note("its filter", error)
            else:
                self._fault = ""
                found: Mask = mask
                return found
        return np.zeros(size, bool)

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        size = _size(rows)
        if not self._fault:
            try:
                found = list(self._compiled.reasons(rows))
                for _, mask in found:
                    _require(mask, size, bool)
            except Exception as error:  # noqa: BLE001
                self._fault = self._faults.note("reasons", error)
            else:
                return found
        return [(Reason(self._fault), np.ones(size, bool))]


class _GuardedScore:
    def __init__(self, compiled: Any, faults: Faults, cluster: Cluster) -> None:
        self.depends = compiled.depends
        self.normalize = self._normalize if compiled.normalize is not None else None
        self._compiled = compiled
        self._faults = faults
        self._cluster = cluster

    def __call__(self, rows: Rows) -> Column:
        return self._guarded(lambda: self._compiled(rows), _size(rows))

    def over(self, feasible: Mask) -> Column:
        """Score all rows, given those that will do."""
        return self._guarded(lambda: self._compiled.over(feasible), feasible.size)

    def _normalize(self, raw: Column, feasible: Mask) -> Column:
        return self._guarded(lambda: self._compiled.normalize(raw, feasible), feasible.size)

    def _guarded(self, compute: Callable[[], Column], size: int) -> Column:
        try:
            scores = compute()
            _require(scores, size, float)
        except Exception as error:  # noqa: BLE001
            self._faults.note("its score", error)
            return np.zeros(size)
        return scores


def _size(rows: Rows) -> int:
    """Return the number of rows; slices have both ends and no step here."""
    if isinstance(rows, slice):
        return int(rows.stop - rows.start)
    return int(rows.size)


def _require(values: object, size: int, kind: type) -> None:
    """Fail unless it is an array of so many truths, or numbers that can be compared."""
    if not isinstance(values, np.ndarray) or values.shape != (size,):
        shape = getattr(values, "shape", type(values).__name__)
        raise TypeError(f"it answered {shape} for {size} rows: answer an array of one per row")
    if kind is bool:
        if values.dtype != bool:
            raise TypeError(f"it answered {values.dtype} where True or False was asked for")
    elif not np.isfinite(values).all():
        raise ValueError("it answered a score that is no finite number")
