"""Now and then: what each pod with GPUs does, from its figures and its log, told in an annotation.

Looking for cycles and phases is work: it is done in a thread, one pod after the other, with rests
so long that all of it takes a hundredth of a core.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import Conflict, Invalid, KubeError, NotFound
from alnair.kube.objects.annotations import rfc3339
from alnair.kube.resources import PODS
from alnair.kube.timestamps import timestamp
from alnair.model import names
from alnair.model.api_types import Workload
from alnair.node.own_thread import in_own_thread
from alnair.processes.agent.profiler.pod_profiler import PodProfiler
from alnair.processes.agent.profiler.training_logs import LoggedPod, TrainingLogs
from alnair.profiler.pod_findings import Values, pod_findings
from alnair.profiler.pods.accounts import Account
from alnair.profiler.workload import workload
from alnair.sharing.matching.node_state import PodOnNode

#: Seconds between two looks at a pod, at least, and part of a core that they may take.
EVERY: Final = 30.0
PART: Final = 0.01
#: Seconds between writes of a pod where nothing began or ended.
LEAST: Final = 60.0
#: What is news then: points of progress, and a part of a time.
_POINTS: Final = 0.01
_PART: Final = 0.1
_IDLE: Final = 1.0

_log = logging.getLogger(__name__)


class _Object(msgspec.Struct):
    pass


_PODS = PODS.typed(_Object)


class Workloads:
    """Looks, and tells.

    Args:
        client: An open client.
        profiler: Has the figures; it is told what was found.
        pods: Those of this node, by the uids in their groups.
        logs: Their logs.
        silent: Namespaces whose logs are not read; `*` stands for all.
        every: Seconds between two looks at a pod, at least.
        now: Seconds since the epoch.
    """

    def __init__(
        self,
        client: Client,
        profiler: PodProfiler,
        pods: Callable[[], Mapping[str, PodOnNode]],
        logs: TrainingLogs,
        *,
        silent: Collection[str] = (),
        every: float = EVERY,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._profiler = profiler
        self._pods = pods
        self._logs = logs
        self._silent = frozenset(silent)
        self._every = every
        self._now = now
        #: Uid → when it was looked at, seconds since the epoch.
        self._looked: dict[str, float] = {}
        self._written: dict[str, Workload] = {}
        self._said = ""

    async def run(self) -> None:
        """Look and tell, until cancelled."""
        while True:
            spent = await self.look()
            await asyncio.sleep(max(_IDLE, spent / PART))

    async def look(self) -> float:
        """Look at the pod whose turn it is; return the seconds of processor time that it took."""
        accounts = self._profiler.accounts.pods
        running = {one.uid for one in accounts.values()}
        for uid in [uid for uid in self._looked if uid not in running]:
            self._forget(uid)
        due = self._now() - self._every
        waiting = [
            (self._looked.get(one.uid, 0.0), group)
            for group, one in accounts.items()
            if one.gpus and self._looked.get(one.uid, 0.0) <= due
        ]
        if not waiting:
            return 0.0
        _, group = min(waiting)
        account = accounts[group]
        self._looked[account.uid] = self._now()
        self._logs.keep(accounts)
        # Copied here, for the books go on while the thread looks.
        series = self._profiler.accounts.window(group)
        found, spent = await in_own_thread(self._find, *series, self._logged(group, account))
        await self._tell(account, found)
        return spent

    def _logged(self, group: str, account: Account) -> LoggedPod | None:
        """The pod, if its log may be read."""
        pod = self._pods().get(group)
        if pod is None or not pod.reads_log or self._silent & {pod.namespace, "*"}:
            return None
        names_ = tuple(sorted(account.containers))
        return LoggedPod(pod.namespace, pod.name, group, names_, pod.log_pattern)

    def _find(
        self, times: Values, metrics: Mapping[str, Values], logged: LoggedPod | None
    ) -> tuple[Workload | None, float]:
        began = time.thread_time()
        found = pod_findings(times, metrics)
        made = workload(
            rfc3339(self._now()),
            type=found.kind,
            period_s=found.period_s,
            phase=found.phase,
            bottleneck=found.bottleneck,
            log=self._logs.read(logged) if logged is not None else None,
        )
        return made, time.thread_time() - began

    def _forget(self, uid: str) -> None:
        del self._looked[uid]
        self._written.pop(uid, None)
        self._profiler.workloads.pop(uid, None)

    async def _tell(self, account: Account, found: Workload | None) -> None:
        if found is None:
            return
        self._profiler.workloads[account.uid] = found
        old = self._written.get(account.uid)
        if old is not None and not is_news(old, found, self._now()):
            return
        metadata = {
            "name": account.name,
            "namespace": account.namespace,
            "uid": account.uid,
            "annotations": {names.WORKLOAD: msgspec.json.encode(found).decode()},
        }
        try:
            await self._client.apply(
                _PODS,
                {"apiVersion": "v1", "kind": "Pod", "metadata": metadata},
                field_manager=names.AGENT_WORKLOAD,
            )
        except (NotFound, Conflict, Invalid):
            _log.debug("pod %s/%s is gone", account.namespace, account.name)
        except KubeError as error:
            if str(error) != self._said:  # once, and not at every try
                _log.warning("what pods do is not written: %s", error)
            self._said = str(error)
            return
        self._said = ""
        self._written[account.uid] = found


def is_news(old: Workload, new: Workload, now: float) -> bool:
    """Whether what was found is to be written.

    Args:
        old: As written.
        new: As found.
        now: Seconds since the epoch.
    """
    age = now - timestamp(old.t)
    kept = ("type", "framework", "phase", "bottleneck")
    if any(getattr(old, field) != getattr(new, field) for field in kept):
        return age >= EVERY
    if age < LEAST:
        return False
    foreseen = None if old.eta_s is None else max(0.0, old.eta_s - age)
    return (
        abs((new.progress or 0.0) - (old.progress or 0.0)) >= _POINTS
        or _differs(old.period_s, new.period_s)
        or _differs(foreseen, new.eta_s)
        or (new.progress is None and new.step != old.step)
    )


def _differs(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is not other
    return abs(one - other) > _PART * max(one, other)
