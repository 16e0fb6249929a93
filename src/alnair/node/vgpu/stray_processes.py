"""Processes on this node's GPUs that are of no container with a slice of them.

Whose they are the kernel says (`alnair.node.cgroups`), what a pod holds the kubelet; the rules are
in `alnair.sharing.strays`. Programs of the node itself are counted and told once in the log: a
display server, an MPS daemon, the agent's own measurement of contexts. Nothing is done to them.
"""

import logging
import os
from collections.abc import Callable, Iterable, Mapping

from alnair.node.cgroups import Cgroup, Proc
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.sharing.strays import (
    Owner,
    StrayAction,
    StrayCase,
    StrayFound,
    StrayPolicy,
    StrayRules,
    judge_stray,
    owner,
    respond_to_stray,
)
from alnair.sharing.violations import Process

_log = logging.getLogger(__name__)

_Key = tuple[str, str]
WholeGpus = Callable[[], Mapping[str, frozenset[str]] | None]
TellStray = Callable[[OwningPod, str, StrayAction], None]


class StrayProcesses:
    """Looks at the strays of one GPU after the other; see `Inspection`.

    Args:
        proc: This machine's.
        policy: What follows from a stray of a pod.
        tell: Called with (pod, GPU, what is to be told or done).
        whole_gpus: Says which whole GPUs each pod holds, by uid, as of no longer than a second ago;
            None where that is not known at the moment: then nobody is accused. In place of the
            function, None: nobody knows it ever.
        pod_of: Says which pod has a uid; None: none that is known yet, so it is waited for.
        rules: When a stray is confirmed.

    Attributes:
        seen: How many there are, by (GPU, `pod` or `host`).
        confirmed: Pods that were found to have some, so far, by GPU.
    """

    def __init__(
        self,
        proc: Proc,
        policy: StrayPolicy = StrayPolicy.WARN,
        tell: TellStray = lambda *_: None,
        *,
        whole_gpus: WholeGpus | None = None,
        pod_of: Callable[[str], OwningPod | None] = lambda _: None,
        rules: StrayRules = StrayRules(),  # noqa: B008 (frozen)
    ) -> None:
        self._policy = policy
        self._tell = tell
        self._ask = self._whole_gpus = whole_gpus
        self._pod_of = pod_of
        self._rules = rules
        own = proc.cgroup(os.getpid())
        self._agent = own.pod if own is not None else ""
        #: Pods are kept with their cases: when a case ends the pod may be forgotten elsewhere.
        self._cases: dict[_Key, tuple[OwningPod, StrayCase]] = {}
        self._told: dict[str, set[int]] = {}
        self.seen: dict[_Key, int] = {}
        self.confirmed: dict[str, int] = {}

    def renew(self) -> None:
        """Begin a look at all GPUs: what pods hold now holds for all of it."""
        if self._ask is not None:
            whole = self._ask()
            self._whole_gpus = lambda: whole

    def may_hold(self, pod: str, uuid: str) -> bool:
        """Tell whether a pod holds a whole GPU, or may, as far as is known now."""
        if self._whole_gpus is None:
            return False
        found = owner(pod, uuid, self._agent, self._whole_gpus())
        return found in {Owner.WHOLE, Owner.UNKNOWN}

    def look(
        self, uuid: str, places: Mapping[int, Cgroup], now: float, process: Callable[[int], Process]
    ) -> None:
        """Look at a GPU.

        Args:
            uuid: Its UUID.
            places: Where the processes are that are of no container with slices, by host pid.
            now: Monotonic seconds.
            process: Gives a process as the driver lists it.
        """
        whole = self._whole_gpus() if self._whole_gpus is not None else None
        pods: dict[str, list[int]] = {}
        hosts: set[int] = set()
        uncertain = 0
        for pid, place in places.items():
            match owner(place.pod, uuid, self._agent, whole):
                case Owner.POD:
                    pods.setdefault(place.pod, []).append(pid)
                case Owner.UNKNOWN:
                    uncertain += 1
                case Owner.HOST:
                    hosts.add(pid)
        for pid in hosts - self._told.get(uuid, set()):
            _log.info("process %d of no pod uses %s: %s", pid, uuid, places[pid].path)
        self._told[uuid] = hosts
        self.seen[uuid, "pod"] = uncertain + sum(len(pids) for pids in pods.values())
        self.seen[uuid, "host"] = len(hosts)
        if whole is None:
            return
        known = {pod for pod, gpu in self._cases if gpu == uuid}
        for pod in sorted(known | pods.keys()):
            self._judge(pod, uuid, [process(pid) for pid in pods.get(pod, ())], now)

    def _judge(self, uid: str, uuid: str, processes: list[Process], now: float) -> None:
        pod, before = self._cases.pop((uid, uuid), (None, None))
        pod = pod or self._pod_of(uid)
        if pod is None:
            return
        after = judge_stray(before, now, processes, self._rules)
        if after is not None:
            self._cases[uid, uuid] = pod, after
        for action in respond_to_stray(self._policy, before, after):
            if isinstance(action, StrayFound):
                self.confirmed[uuid] = self.confirmed.get(uuid, 0) + 1
            self._tell(pod, uuid, action)

    def forget(self, there: Iterable[str]) -> None:
        """Forget the GPUs that are not there any more, and what their processes did."""
        kept = set(there)
        for uuid in self._told.keys() - kept:
            for uid in sorted(pod for pod, gpu in self._cases if gpu == uuid):
                self._judge(uid, uuid, [], 0.0)
            del self._told[uuid]
            for kind in ("pod", "host"):
                self.seen.pop((uuid, kind), None)
