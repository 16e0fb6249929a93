"""The books of a node's pods: what each used, from its first container to its last.

Containers are known by name: one that was restarted goes on with its figures. What is of no named
container, as a pod's sandbox, is left out. A pod's figures are sums over its containers; those that
are parts of a time (throttling, pressure) are the largest of them, and those of GPUs the means over
the pod's GPUs.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from alnair.model import usage
from alnair.model.usage import Digest, PodUsage, UsedGpu
from alnair.profiler.pods.digest_table import METRICS, DigestTable, TableState
from alnair.profiler.pods.gpu_use import GpusUsed, GpuUse, Holder, gpu_figures
from alnair.profiler.pods.rates import Figures, cgroup_rates, network_rates
from alnair.profiler.pods.window import Windows
from alnair.profiler.samples import CgroupSample, ContainerKey, NetworkSample

#: Metrics of which a pod has the largest of its containers.
_LARGEST: Final = frozenset(
    {usage.CPU_THROTTLED, usage.CPU_PRESSURE, usage.MEMORY_PRESSURE, usage.IO_PRESSURE}
)
_OF_GPUS: Final = frozenset({usage.GPU_UTIL, usage.GPU_MEMORY_COPY_UTIL})
_COLUMNS: Final = {metric: column for column, metric in enumerate(METRICS)}
_AT_LARGEST: Final = [_COLUMNS[metric] for metric in sorted(_LARGEST)]
_AT_GPUS: Final = [_COLUMNS[metric] for metric in sorted(_OF_GPUS)]
#: Seconds that one sample may stand for: what lies further apart was not measured.
_GAP: Final = 5.0
#: Seconds that the first samples stand for.
_FIRST: Final = 1.0


class Named(Protocol):
    """What the API server says of a pod."""

    @property
    def uid(self) -> str:
        """As the API server has it."""
        ...

    @property
    def namespace(self) -> str:
        """Where it is."""
        ...

    @property
    def name(self) -> str:
        """And what it is called there."""
        ...

    @property
    def containers(self) -> Mapping[str, str]:
        """The runtime's ids of its containers → their names; init containers too."""
        ...

    @property
    def is_ended(self) -> bool:
        """Whether its phase is Succeeded or Failed."""
        ...


class Seen(msgspec.Struct, frozen=True):
    """What was seen at one moment.

    Attributes:
        now: Seconds, monotonic.
        epoch: The same, since the epoch.
        names: Of all pods of the node, by the uids in their groups; so are they in the others.
        containers: Their groups.
        networks: By pod.
        present: The pods that have a group.
        gpus: Who uses which GPU; None while that is not measured.
        given: Pod → its GPUs.
        by_gpus: Names of containers of which the API server has not told yet.
    """

    now: float
    epoch: float
    names: Mapping[str, Named]
    containers: Mapping[ContainerKey, CgroupSample]
    networks: Mapping[str, NetworkSample]
    present: frozenset[str]
    gpus: GpusUsed | None = None
    given: Mapping[str, list[UsedGpu]] = {}
    by_gpus: Mapping[ContainerKey, str] = {}

    def name_of(self, key: ContainerKey) -> str | None:
        """Return a container's name; None: it is not known yet."""
        if (pod := self.names.get(key.pod)) is None:
            return None
        return pod.containers.get(key.container) or self.by_gpus.get(key)


class Account(msgspec.Struct):
    """A pod that runs.

    Attributes:
        uid: Of the pod, at the API server.
        namespace: Where it is.
        name: What it is called.
        row: In the table.
        window: In the windows.
        started: Seconds since the epoch.
        seen: When it last had a container.
        containers: Name → row in the table.
        gpus: What it was given, by UUID.
        energy_j: Of its GPUs so far; None: not measured.
        samples: The newest of its containers' groups, by name: those that run now.
        network: The newest sample of its network.
        uses: Its containers' use of GPUs now, by (name, UUID).
    """

    uid: str
    namespace: str
    name: str
    row: int
    window: int
    started: float
    seen: float
    containers: dict[str, int] = {}
    gpus: dict[str, UsedGpu] = {}
    energy_j: float | None = None
    samples: dict[str, CgroupSample] = {}
    network: NetworkSample | None = None
    uses: dict[tuple[str, str], GpuUse] = {}


class SavedPod(msgspec.Struct, frozen=True):
    """An account as it is written down; see `Account`. `group` is its uid in the groups."""

    group: str
    uid: str
    namespace: str
    name: str
    started: float
    seen: float
    containers: list[str]
    gpus: list[UsedGpu]
    energy_j: float | None = None


class SavedAccounts(msgspec.Struct, frozen=True):
    """All accounts; of each pod the table has its own row, and then those of its containers."""

    v: int
    pods: list[SavedPod]
    table: TableState


class PodAccounts:
    """Keeps them.

    Args:
        node: Its name.

    Attributes:
        pods: Those that run, by the uids in their groups.
    """

    def __init__(self, node: str) -> None:
        self._node = node
        self._table = DigestTable()
        self._windows = Windows()
        self._groups: dict[ContainerKey, CgroupSample] = {}
        self._now = -_GAP
        self.pods: dict[str, Account] = {}

    def tick(self, seen: Seen) -> list[PodUsage]:
        """Take in what was seen; return the pods that have ended since."""
        seconds = seen.now - self._now
        # After a gap, as at the start, the sample stands for itself only.
        seconds = seconds if 0 < seconds <= _GAP else _FIRST
        self._now = seen.now
        # A pod from a file whose copy at the API server was made anew: there, it is another pod.
        replaced = [self._end(uid) for uid in list(self.pods) if self._is_another(uid, seen)]
        figures = self._take_containers(seen)
        self._take_gpus(seen, figures)
        lines = [found for by_name in figures.values() for found in by_name.values()]
        of_containers = _matrix(lines)
        counts = [len(by_name) for by_name in figures.values()]
        accounts = [self.pods[uid] for uid in figures]
        of_pods = _sums(of_containers, counts)
        beside = [
            self._of_pod(account, seen.networks.get(uid))
            for uid, account in zip(figures, accounts, strict=True)
        ]
        _put(of_pods, beside)
        # What is of no certain container is its pod's alone.
        rows = [
            self._row(account, name) if name else -1
            for account, by_name in zip(accounts, figures.values(), strict=True)
            for name in by_name
        ]
        named = [at for at, row in enumerate(rows) if row >= 0]
        self._table.update(
            [*(rows[at] for at in named), *(account.row for account in accounts)],
            np.concatenate((of_containers[named], of_pods)),
            seconds,
        )
        self._windows.put(seen.epoch, [account.window for account in accounts], of_pods)
        self._silence(figures)
        # Of one whose name is not known yet, the first stays: what it used since is told then.
        self._groups = {
            key: sample if seen.name_of(key) is not None else self._groups.get(key, sample)
            for key, sample in seen.containers.items()
            if key.pod in seen.names
        }
        ended = [self._end(uid) for uid in list(self.pods) if self._has_ended(uid, seen)]
        return replaced + ended

    def running(self) -> list[PodUsage]:
        """Return the pods that run, until now."""
        return [self.usage(group) for group in self.pods]

    def usage(self, group: str) -> PodUsage:
        """Return one that runs, until now."""
        return self._usage(self.pods[group], ended=None)

    def values(self, uid: str) -> dict[str, tuple[float | None, float]]:
        """Return metric → (newest, largest) of a pod."""
        return self._table.values(self.pods[uid].row)

    def series(self, uid: str) -> tuple[list[float], dict[str, list[float | None]]]:
        """Return a pod's last ten minutes: times since the epoch, and metric → values.

        What was never measured in this time is absent, and what was not at a moment is None.
        """
        at, metrics = self.window(uid)
        found = {
            metric: [None if np.isnan(v) else round(float(v), 4) for v in values]
            for metric, values in metrics.items()
        }
        return [round(float(t), 3) for t in at], found

    def window(self, uid: str) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
        """Return a pod's last ten minutes, as `series` does, with NaN for what was not measured."""
        at, values = self._windows.series(self.pods[uid].window)
        columns = {metric: values[:, at_] for at_, metric in enumerate(METRICS)}
        return at, {
            metric: column.astype(np.float64)
            for metric, column in columns.items()
            if not np.isnan(column).all()
        }

    def newest(self, uid: str, metric: str, count: int) -> list[float]:
        """Return what was measured of a metric of a pod in its last samples."""
        found = self._windows.newest(self.pods[uid].window, count)[:, METRICS.index(metric)]
        return [float(value) for value in found if not np.isnan(value)]

    def roll_ups(
        self, uids: Sequence[str], metrics: Sequence[str], count: int
    ) -> NDArray[np.float64]:
        """Return pods by metrics by `STATS` over their last samples; NaN: nothing was measured."""
        return self._windows.roll_ups([self.pods[uid].window for uid in uids], metrics, count)

    def saved(self) -> SavedAccounts:
        """Return all that must outlive the process."""
        pods: list[SavedPod] = []
        rows: list[int] = []
        for group, one in self.pods.items():
            rows += [one.row, *one.containers.values()]
            pods.append(
                SavedPod(
                    group,
                    one.uid,
                    one.namespace,
                    one.name,
                    one.started,
                    one.seen,
                    list(one.containers),
                    list(one.gpus.values()),
                    one.energy_j,
                )
            )
        return SavedAccounts(1, pods, self._table.state(rows))

    def restore(self, saved: SavedAccounts, without: Iterable[str] = ()) -> None:
        """Go on with what was saved.

        Args:
            saved: By an agent before this one.
            without: Uids of pods that have ended since, of which that is written elsewhere.

        Raises:
            ValueError: It is not what `saved` returns.
        """
        if saved.v != 1:
            raise ValueError(f"version {saved.v} is not known: expected 1")
        if saved.table.rows != sum(1 + len(one.containers) for one in saved.pods):
            raise ValueError("it has other rows than pods and containers")
        gone = set(without)
        rows = iter(self._table.restore(saved.table))
        for one in saved.pods:
            row = next(rows)
            containers = {name: next(rows) for name in one.containers}
            if one.uid in gone:
                for free in (row, *containers.values()):
                    self._table.remove(free)
                continue
            self.pods[one.group] = Account(
                one.uid,
                one.namespace,
                one.name,
                row,
                self._windows.add(),
                one.started,
                one.seen,
                containers,
                {gpu.uuid: gpu for gpu in one.gpus},
                one.energy_j,
            )

    def _take_containers(self, seen: Seen) -> dict[str, dict[str, Figures]]:
        """Return the figures of containers, by pod and name; opens accounts."""
        found: dict[str, dict[str, Figures]] = {}
        for account in self.pods.values():
            account.samples = {}
        for key, sample in seen.containers.items():
            if (name := seen.name_of(key)) is None:
                continue
            names = seen.names[key.pod]
            account = self.pods.get(key.pod) or self._open(key.pod, names, seen.epoch)
            account.seen = seen.epoch
            figures = cgroup_rates(self._groups.get(key), sample)
            others = found.setdefault(key.pod, {})
            # For a moment, a container that is restarted may have two groups.
            others[name] = _added(others[name], figures) if name in others else figures
            account.samples[name] = sample
        return found

    def _take_gpus(self, seen: Seen, figures: dict[str, dict[str, Figures]]) -> None:
        """Add what containers use of GPUs to their figures."""
        for uid, account in self.pods.items():
            account.uses = {}
            for gpu in seen.given.get(uid, ()):
                account.gpus[gpu.uuid] = gpu
        if seen.gpus is None:
            return
        by_holder: dict[Holder, list[GpuUse]] = {}
        for (holder, uuid), use in seen.gpus.uses.items():
            if holder.pod not in figures:
                continue  # none of its containers runs
            account = self.pods[holder.pod]
            account.uses[holder.container, uuid] = use
            if use.energy_j is not None:
                account.energy_j = (account.energy_j or 0.0) + use.energy_j
            by_holder.setdefault(holder, []).append(use)
        for holder, uses in by_holder.items():
            figures[holder.pod].setdefault(holder.container, {}).update(gpu_figures(uses))

    def _of_pod(self, account: Account, network: NetworkSample | None) -> Figures:
        """Return a pod's figures that are not those of its containers together."""
        found = _over_gpus(account.uses)
        if network is not None:
            found |= network_rates(account.network, network)
        account.network = network
        return found

    def _open(self, uid: str, names: Named, epoch: float) -> Account:
        account = self.pods[uid] = Account(
            names.uid,
            names.namespace,
            names.name,
            self._table.add(),
            self._windows.add(),
            started=epoch,
            seen=epoch,
        )
        return account

    def _row(self, account: Account, name: str) -> int:
        if name not in account.containers:
            account.containers[name] = self._table.add()
        return account.containers[name]

    def _silence(self, figures: Mapping[str, Mapping[str, Figures]]) -> None:
        """Let those that have no group now have no newest sample."""
        for uid, account in self.pods.items():
            by_name = figures.get(uid, {})
            if not by_name:
                self._table.silence(account.row)
            elif by_name.keys() >= account.containers.keys():
                continue
            for name, row in account.containers.items():
                if name not in by_name:
                    self._table.silence(row)

    def _is_another(self, uid: str, seen: Seen) -> bool:
        names = seen.names.get(uid)
        return names is not None and names.uid != self.pods[uid].uid

    def _has_ended(self, uid: str, seen: Seen) -> bool:
        if self.pods[uid].samples:
            return False
        names = seen.names.get(uid)
        # Between two runs of its containers, a pod has its group still.
        return names is None or names.is_ended or uid not in seen.present

    def _end(self, uid: str) -> PodUsage:
        account = self.pods.pop(uid)
        found = self._usage(account, ended=account.seen)
        for row in (account.row, *account.containers.values()):
            self._table.remove(row)
        self._windows.remove(account.window)
        return found

    def _usage(self, account: Account, ended: float | None) -> PodUsage:
        def digests(row: int) -> dict[str, Digest]:
            return self._table.digests(row, last=ended is None)

        return PodUsage(
            v=1,
            node=self._node,
            namespace=account.namespace,
            pod=account.name,
            uid=account.uid,
            started=round(account.started, 3),
            ended=None if ended is None else round(ended, 3),
            metrics=digests(account.row),
            containers={name: digests(row) for name, row in account.containers.items()},
            gpus=list(account.gpus.values()),
            energy_j=None if account.energy_j is None else round(account.energy_j, 3),
        )


def _matrix(lines: list[Figures]) -> NDArray[np.float64]:
    """Return lines by metrics; NaN: not measured."""
    found = np.full((len(lines), len(METRICS)), np.nan)
    _put(found, lines)
    return found


def _put(matrix: NDArray[np.float64], lines: list[Figures]) -> None:
    """Put figures in a line of a matrix each; what they do not say stays."""
    at: list[int] = []
    values: list[float] = []
    for begin, figures in enumerate(lines):
        if figures:
            first = begin * len(METRICS)
            at += [first + _COLUMNS[metric] for metric in figures]
            values += figures.values()
    matrix.reshape(-1)[at] = values


def _sums(of_containers: NDArray[np.float64], counts: list[int]) -> NDArray[np.float64]:
    """Return pods by metrics: their containers together, but for what is over GPUs.

    Args:
        of_containers: Containers by metrics, pod by pod.
        counts: How many each pod has: one at least.
    """
    if not counts:
        return np.empty((0, len(METRICS)))
    begins = np.cumsum([0, *counts[:-1]])
    known = ~np.isnan(of_containers)
    found = np.add.reduceat(np.where(known, of_containers, 0.0), begins, axis=0)
    found[~np.logical_or.reduceat(known, begins, axis=0)] = np.nan
    found[:, _AT_LARGEST] = np.fmax.reduceat(of_containers[:, _AT_LARGEST], begins, axis=0)
    found[:, _AT_GPUS] = np.nan
    return found


def _added(one: Figures, other: Figures) -> Figures:
    """Return both together."""
    found = dict(one)
    for metric, value in other.items():
        if metric not in found:
            found[metric] = value
        elif metric in _LARGEST:
            found[metric] = max(found[metric], value)
        else:
            found[metric] += value
    return found


def _over_gpus(uses: Mapping[tuple[str, str], GpuUse]) -> Figures:
    """Return a pod's percentages: on each GPU the sum of its containers, and the mean of those."""
    found: Figures = {}
    if not uses:
        return found
    for metric, field in (
        (usage.GPU_UTIL, "util"),
        (usage.GPU_MEMORY_COPY_UTIL, "memory_copy"),
    ):
        sums: dict[str, float] = {}
        for (_, uuid), use in uses.items():
            value = getattr(use, field)
            if value is None:
                break
            sums[uuid] = sums.get(uuid, 0.0) + value
        else:
            if sums:
                found[metric] = sum(sums.values()) / len(sums)
    return found
