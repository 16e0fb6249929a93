"""Measured loads, written where the scheduler reads them: on the node and on pods that hold GPUs.

By server-side apply under a name of its own: what is left out goes, also what an agent before this
one wrote of a GPU that is no more. A steady value is not written again, but for the node's now and
then: its object may have been made anew, and a write that changes nothing costs the server little.
Agents look at different times, and each has a budget of writes: what matters most goes first.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import Conflict, Invalid, KubeError, NotFound
from alnair.kube.objects.annotations import rfc3339
from alnair.kube.resources import NODES, PODS
from alnair.kube.timestamps import timestamp
from alnair.model import names, usage
from alnair.model.api_types import GpuLoadAnnotation, PodUtilization
from alnair.model.gpu_models import architecture
from alnair.node.load import GpusLoad
from alnair.node.nvml import NvmlGpu
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.processes.agent.profiler.pod_profiler import PodProfiler
from alnair.profiler.pods.write_budget import FIGURES_RATE, WriteBudget, turn
from alnair.profiler.pods.write_rule import LARGE, LEAST, Noise, PodFigures, figures, is_news
from alnair.sharing.load import PodLoad

#: Seconds between writes.
EVERY: Final = 30.0
#: Seconds after which a node is told again what has not changed.
REFRESH: Final = 600.0
#: What is a change: points of a percentage, MiB, and seconds of the begin of idleness.
POINTS: Final = 2.0
MIB: Final = 64
_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)


class _Meta(msgspec.Struct):
    uid: str = ""


class _Object(msgspec.Struct):
    metadata: _Meta


class _Wish(msgspec.Struct):
    """What is to be written of a pod, and how much it matters; see `WriteBudget`."""

    pod: OwningPod
    wanted: PodUtilization | None
    least: float
    weight: float = 0.0


_NODES = NODES.typed(_Object)
_PODS = PODS.typed(_Object)


class LoadAnnotations:
    """Writes what has changed.

    Args:
        client: An open client.
        node: Name of this node.
        gpus: Those of the node now.
        load: What was measured.
        profiler: Knows more of GPUs and pods; None: nobody does.
        every: Seconds between writes.
        now: Seconds since the epoch.

    Attributes:
        budget: Of writes.
    """

    def __init__(
        self,
        client: Client,
        node: str,
        gpus: Callable[[], Iterable[NvmlGpu]],
        load: GpusLoad,
        profiler: PodProfiler | None = None,
        *,
        every: float = EVERY,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._node = node
        self._gpus = gpus
        self._load = load
        self._profiler = profiler
        self._every = every
        self._now = now
        self.budget = WriteBudget(FIGURES_RATE, who=node)
        #: By GPUs and by pods.
        self._noises: dict[str, Noise] = {}
        #: Whether all pods that there were at the start are in `_of_pods`: what comes now begins.
        self._knows_all = False
        self._uid = ""
        #: As last written; None: nothing yet by this process.
        self._of_gpus: dict[str, GpuLoadAnnotation] | None = None
        self._node_at = 0.0
        self._of_pods: dict[OwningPod, PodUtilization | None] = {}
        self._said = ""

    async def run(self) -> None:
        """Write now and then, until cancelled."""
        # Not when others do, nor before something was measured.
        await asyncio.sleep(self._every / 2 + turn(self._node, self._every))
        while True:
            await self.write()
            await asyncio.sleep(self._every)

    async def write(self) -> None:
        """Write once what has changed; what fails or has to wait is tried at the next time."""
        problem = ""
        try:
            await self._write_node()
        except KubeError as error:
            problem = f"node {self._node}: {error}"
        loads = self._load.pods()
        for wish in sorted(self._wishes(loads), key=lambda wish: (wish.least, -wish.weight)):
            pod = wish.pod
            if not self.budget.take(self._now(), wish.least):
                continue
            try:
                await self._write_pod(pod, wish.wanted)
            except KubeError as error:
                problem = f"pod {pod.namespace}/{pod.name}: {error}"
        for pod in [pod for pod in self._of_pods if pod not in loads]:
            if self._wanted(pod, None) == self._of_pods[pod]:
                del self._of_pods[pod]
        self._knows_all = self._knows_all or loads.keys() <= self._of_pods.keys()
        kept = {pod.uid for pod in self._of_pods} | set(self._load.gpus())
        self._noises = {key: noise for key, noise in self._noises.items() if key in kept}
        if problem and problem != self._said:  # once, and not at every try
            _log.warning("measured load is not written: %s", problem)
        self._said = problem

    def _noise(self, key: str, value: float) -> float:
        return self._noises.setdefault(key, Noise()).take(value)

    def _wishes(self, loads: Mapping[OwningPod, PodLoad | None]) -> Iterator[_Wish]:
        for pod in {**loads, **self._of_pods}:
            old, wanted = self._of_pods.get(pod), self._wanted(pod, loads.get(pod))
            if pod not in self._of_pods:
                is_new = self._knows_all
                yield _Wish(pod, wanted, WriteBudget.ALWAYS if is_new else WriteBudget.PLAIN)
            elif wanted == old:
                continue
            elif pod not in loads:  # it has ended
                yield _Wish(pod, wanted, WriteBudget.ALWAYS)
            elif old is None or wanted is None or old.idle_since != wanted.idle_since:
                yield _Wish(pod, wanted, WriteBudget.URGENT)
            else:
                change = abs(wanted.gpu - old.gpu)
                least = WriteBudget.PLAIN if change >= LARGE else WriteBudget.SMALL
                yield _Wish(pod, wanted, least, change * (self._now() - timestamp(old.t)))

    async def _write_node(self) -> None:
        loads, before = self._load.gpus(), self._of_gpus or {}
        wanted: dict[str, GpuLoadAnnotation] = {}
        noises: dict[str, float] = {}
        for gpu in self._gpus():
            found = loads.get(gpu.uuid)
            if found is None:
                continue
            key = f"{names.GPU_LOAD}{gpu.index}"
            made = GpuLoadAnnotation(
                1,
                rfc3339(self._now()),
                gpu.uuid,
                round(found.util, 1),
                found.memory_bytes >> 20,
                round(found.window_s, 1),
                architecture(gpu.model) or msgspec.UNSET,
                gpu.memory_bytes >> 20,
                **self._profiled(gpu.uuid),
            )
            old, noises[key] = before.get(key), self._noise(gpu.uuid, made.util)
            is_same = old is not None and is_steady(old, made, noises[key])
            wanted[key] = old if old is not None and is_same else made
        now = self._now()
        age = now - self._node_at
        if self._of_gpus is not None and not are_news(before, wanted, age, noises):
            wanted = before
        if wanted == self._of_gpus and age < REFRESH:
            return
        if self._of_gpus is None or wanted.keys() != before.keys():
            least = WriteBudget.URGENT
        else:
            is_due = age >= REFRESH or are_news(before, wanted, 0.0, noises)
            least = WriteBudget.PLAIN if is_due else WriteBudget.SMALL
        if not self.budget.take(now, least):
            return
        try:
            # With its uid, so that a node that was deleted is not made anew by this.
            if not self._uid:
                self._uid = (await self._client.get(_NODES, self._node)).metadata.uid
            metadata = {
                "name": self._node,
                "uid": self._uid,
                "annotations": {key: _text(document) for key, document in wanted.items()},
            }
            await self._client.apply(
                _NODES,
                {"apiVersion": "v1", "kind": "Node", "metadata": metadata},
                field_manager=names.AGENT_PROFILER,
            )
        except (NotFound, Conflict):
            self._uid = ""  # the node may come again, as another
            self._of_gpus = None
            raise
        self._of_gpus, self._node_at = wanted, now

    def _profiled(self, uuid: str) -> dict[str, Any]:
        """Return the optional fields of a GPU."""
        sample = self._profiler.samples.get(uuid) if self._profiler is not None else None
        if sample is None or self._profiler is None:
            return {}
        links, copy = self._profiler.links.get(uuid, {}), sample.memory_copy
        return {
            "memory_copy_util": msgspec.UNSET if copy is None else round(min(copy, 100.0), 1),
            "pcie_mib_s": _both_ways(links, usage.PCIE_RX_MIB_S, usage.PCIE_TX_MIB_S),
            "nvlink_mib_s": _both_ways(links, usage.NVLINK_RX_MIB_S, usage.NVLINK_TX_MIB_S),
        }

    def _wanted(self, pod: OwningPod, load: PodLoad | None) -> PodUtilization | None:
        old, now = self._of_pods.get(pod), self._now()
        values = self._profiler.values(pod.uid) if self._profiler is not None else {}
        if load is not None:
            return utilization(old, load, now, values, self._noise(pod.uid, load.gpu))
        if self._profiler is None or pod.uid not in self._profiler.finals:
            return None
        # Its processes have ended: what it used at most is said once more.
        if old is not None and old.current is None and old.maximum is not None:
            return old
        last = figures(0.0, values)
        return PodUtilization(1, rfc3339(now), 0.0, None, None, dict(last.maximum) or None)

    async def _write_pod(self, pod: OwningPod, wanted: PodUtilization | None) -> None:
        metadata = {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "annotations": {names.UTILIZATION: _text(wanted)} if wanted is not None else {},
        }
        try:
            await self._client.apply(
                _PODS,
                {"apiVersion": "v1", "kind": "Pod", "metadata": metadata},
                field_manager=names.AGENT_PROFILER,
            )
        except (NotFound, Conflict, Invalid):
            _log.debug("pod %s/%s is gone", pod.namespace, pod.name)
        self._of_pods[pod] = wanted


def is_steady(old: GpuLoadAnnotation, new: GpuLoadAnnotation, noise: float = 0.0) -> bool:
    """Whether the old values still say what the new ones do; `noise` is in points of the use."""
    return (
        old.uuid == new.uuid
        and abs(old.util - new.util) < max(POINTS, noise)
        and abs(old.memory_used_mib - new.memory_used_mib) < MIB
        # A mean of the first seconds is written again when it is one of a whole window.
        and new.window_s < 2 * old.window_s
    )


def are_news(
    before: Mapping[str, GpuLoadAnnotation],
    wanted: Mapping[str, GpuLoadAnnotation],
    age: float,
    noises: Mapping[str, float] = {},
) -> bool:
    """Whether a node's changes are told now: small ones wait until a minute has passed.

    Args:
        before: As written.
        wanted: As they are now.
        age: Seconds since they were written.
        noises: Points of the use that are no change, by the same keys.
    """
    if age >= LEAST or wanted.keys() != before.keys():
        return True
    return any(
        new.uuid != before[key].uuid
        or abs(new.util - before[key].util) >= max(LARGE, noises.get(key, 0.0))
        for key, new in wanted.items()
    )


def utilization(
    old: PodUtilization | None,
    load: PodLoad,
    now: float,
    values: Mapping[str, tuple[float | None, float]] = {},
    noise: float = 0.0,
) -> PodUtilization:
    """Return the document; the old one while it still says what is the case.

    Args:
        old: What was written last.
        load: What was measured.
        now: Seconds since the epoch.
        values: Metric → (newest or None, largest).
        noise: Points of the use that are no change.
    """
    idle = None if load.idle_for is None else rfc3339(now - load.idle_for)
    if old is not None and idle is not None and old.idle_since is not None:
        shift = timestamp(idle) - timestamp(old.idle_since)
        idle = old.idle_since if abs(shift) <= _SECONDS else idle
    new = figures(load.gpu, values)
    made = PodUtilization(
        1, rfc3339(now), new.gpu, idle, dict(new.current) or None, dict(new.maximum) or None
    )
    # A pod that begins or ends to be idle is news at once: others may want its GPU.
    if old is None or old.idle_since != idle:
        return made
    said = PodFigures(old.gpu, old.current or {}, old.maximum or {})
    return made if is_news(said, new, now - timestamp(old.t), noise) else old


def _both_ways(links: Mapping[str, float], *metrics: str) -> float | msgspec.UnsetType:
    known = [links[metric] for metric in metrics if metric in links]
    return round(sum(known), 1) if known else msgspec.UNSET


def _text(document: GpuLoadAnnotation | PodUtilization) -> str:
    fields: Mapping[str, object] = msgspec.structs.asdict(document)
    return msgspec.json.encode(
        {k: v for k, v in fields.items() if v not in (None, msgspec.UNSET)}
    ).decode()
