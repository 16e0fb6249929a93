"""What pods do, told in the annotation `workload`: news, and no more than a budget of writes."""

import logging
from collections.abc import Callable
from typing import Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import Conflict, Invalid, KubeError, NotFound
from alnair.kube.resources import PODS
from alnair.kube.timestamps import timestamp
from alnair.model import names
from alnair.model.api_types import Workload
from alnair.model.job_facts import CudaCalls, ModelFacts
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.profiler.pods.write_budget import WORKLOADS_RATE, WriteBudget

#: Seconds between writes of a pod where something began or ended, and where nothing did.
SOON: Final = 30.0
LEAST: Final = 60.0
#: What is news then: points of progress, and a part of a time.
_POINTS: Final = 0.01
_PART: Final = 0.1
#: What begins and ends; more of it is told than of figures.
_KINDS: Final = ("type", "framework", "phase", "bottleneck", "neighbours")
#: What is told at once, when it begins and when it ends.
_ALARMS: Final = ("idle_since", "memory_full_s")

_log = logging.getLogger(__name__)


class _Object(msgspec.Struct):
    pass


_PODS = PODS.typed(_Object)


class WorkloadAnnotations:
    """Writes them.

    Args:
        client: An open client.
        now: Seconds since the epoch.
        node: Name of this node.
    """

    def __init__(self, client: Client, now: Callable[[], float], node: str = "") -> None:
        self._client = client
        self._now = now
        self._budget = WriteBudget(WORKLOADS_RATE, who=node)
        self._written: dict[str, Workload] = {}
        self._said = ""

    def forget(self, uid: str) -> None:
        """Forget a pod."""
        self._written.pop(uid, None)

    async def tell(self, pod: OwningPod, found: Workload) -> None:
        """Write what was found, if it is news; what fails or has to wait is no less news later."""
        old = self._written.get(pod.uid)
        if old is not None and not is_news(old, found, self._now()):
            return
        if not self._budget.take(self._now(), _least(old, found)):
            return
        metadata = {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "annotations": {names.WORKLOAD: msgspec.json.encode(found).decode()},
        }
        try:
            await self._client.apply(
                _PODS,
                {"apiVersion": "v1", "kind": "Pod", "metadata": metadata},
                field_manager=names.AGENT_WORKLOAD,
            )
        except (NotFound, Conflict, Invalid):
            _log.debug("pod %s/%s is gone", pod.namespace, pod.name)
        except KubeError as error:
            if str(error) != self._said:  # once, and not at every try
                _log.warning("what pods do is not written: %s", error)
            self._said = str(error)
            return
        self._said = ""
        self._written[pod.uid] = found


def is_news(old: Workload, new: Workload, now: float) -> bool:
    """Whether what was found is to be written.

    Args:
        old: As written.
        new: As found.
        now: Seconds since the epoch.
    """
    age = now - timestamp(old.t)
    if _alarms(old) != _alarms(new):
        return True
    if _is_another(old, new):
        return age >= SOON
    if age < LEAST:
        return False
    foreseen = None if old.eta_s is None else max(0.0, old.eta_s - age)
    return (
        abs((new.progress or 0.0) - (old.progress or 0.0)) >= _POINTS
        or _differs(old.period_s, new.period_s)
        or _differs(foreseen, new.eta_s)
        or (new.progress is None and new.step != old.step)
        or _calls_otherwise(old.cuda, new.cuda)
        or _model_otherwise(old.model or ModelFacts(), new.model or ModelFacts())
        or (new.input is None) != (old.input is None)
    )


def _model_otherwise(old: ModelFacts, new: ModelFacts) -> bool:
    """Whether another model is told; an estimate that moves a little is none."""
    figures = (old.parameters, new.parameters), (old.weights_mib, new.weights_mib)
    return old.name != new.name or any(
        _differs(one.value if one else None, other.value if other else None)
        for one, other in figures
    )


def _calls_otherwise(old: CudaCalls | None, new: CudaCalls | None) -> bool:
    """Whether the distribution has changed; how much is called is told with the rest."""
    if old is None or new is None:
        return new is not None
    classes = old.shares.keys() | new.shares.keys()
    return old.unknown != new.unknown or any(
        abs(old.shares.get(one, 0.0) - new.shares.get(one, 0.0)) > _PART for one in classes
    )


def _is_another(old: Workload, new: Workload) -> bool:
    same = all(getattr(old, field) == getattr(new, field) for field in _KINDS)
    return not same or _alarms(old) != _alarms(new)


def _alarms(found: Workload) -> list[bool]:
    return [getattr(found, field) is not None for field in _ALARMS]


def _least(old: Workload | None, new: Workload) -> float:
    if old is None:
        return WriteBudget.ALWAYS
    return WriteBudget.PLAIN if _is_another(old, new) else WriteBudget.SMALL


def _differs(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is not other
    return abs(one - other) > _PART * max(one, other)
