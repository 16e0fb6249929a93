"""The node's device plugin as the agent has it: `alnair.sharing.matching` and what carries it out.

The CDI specs are files: they outlive the plugin, and tell it what it has started.
"""

import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from alnair.model import names
from alnair.model.api_types import AssignedGpu
from alnair.sharing.matching.choice import choose
from alnair.sharing.matching.node_state import Allocation, NodeGpu, PodOnNode
from alnair.sharing.matching.outcomes import Choose, Refuse, Start, Wait
from alnair.sharing.matching.preference import preferred_ids
from alnair.sharing.matching.starting import Listed, start
from kit.model_node.api import Api, Watch
from kit.model_node.judge import Judge, Who


class Spec(NamedTuple):
    """A CDI spec: whose it is, and what it gives."""

    uid: str
    container: str
    parts: tuple[AssignedGpu, ...]


class Plugin:
    """Serves whole GPUs and slots."""

    def __init__(
        self, rng: random.Random, api: Api, gpus: list[NodeGpu], judge: Judge, *, aligned: bool
    ) -> None:
        self.rng = rng
        self.api = api
        self.gpus = gpus
        self.judge = judge
        self.aligned = aligned
        self.watch = Watch(api)
        self.specs: dict[str, Spec] = {}
        #: Reads the kubelet's file.
        self.checkpoint: Callable[[], tuple[Allocation, ...]] = tuple
        self.counts: Counter[str] = Counter()
        self.crashes = 0.0
        #: The driver has told its GPUs.
        self.knows_gpus = True
        self._nonce = 0
        self._chosen: dict[str, PodOnNode] = {}

    def restart(self, behind: int) -> None:
        """What is in memory is lost; the API server may answer with what was true a while ago."""
        self.watch.list_again(behind)
        self._chosen = {}
        self.knows_gpus = False

    def allocate(self, resource: str, ids: frozenset[str]) -> str:
        self._nonce += 1
        return f"alnair/{self._nonce}"

    def preferred(
        self, resource: str, size: int, available: Collection[str], must: Collection[str]
    ) -> list[str]:
        if resource != names.GPU:
            return []
        pods = self._pods().values()
        return preferred_ids(size, list(available), list(must), pods, self.checkpoint())

    def pre_start(
        self,
        resource: str,
        ids: frozenset[str],
        allocations: tuple[Allocation, ...],
        listed: Collection[Listed],
        caller: Who,
    ) -> str:
        """Return an error, or nothing if it may start; only the judge sees the caller."""
        outcome = self._decide(resource, ids, allocations, listed)
        if isinstance(outcome, Choose):
            chosen = choose(
                outcome.pod, self.gpus, self._pods().values(), self._started(), outcome.allocated
            )
            if isinstance(chosen, Refuse):
                return self._refuse(outcome.pod.uid, chosen)
            if isinstance(chosen, Wait):
                self.counts["told to wait"] += 1
                return chosen.reason
            if not self.api.assign(outcome.pod.uid, chosen):
                return "the pod has an assignment already, or is gone"
            self.counts["chosen here"] += 1
            self._chosen[outcome.pod.uid] = self.api.pods[outcome.pod.uid]
            if self.rng.random() < self.crashes:
                return self._crash()
            outcome = self._decide(resource, ids, allocations, listed)
            if not isinstance(outcome, Start) and not self.aligned:
                self.judge.is_chosen_in_vain(caller, outcome)
        if isinstance(outcome, Wait):
            self.counts["told to wait"] += 1
            return outcome.reason
        if isinstance(outcome, Refuse):
            return self._refuse(caller[0], outcome)
        assert isinstance(outcome, Start)
        self.judge.takes(outcome.pod.uid, [c.name for c in outcome.containers], caller)
        for begun in outcome.containers:
            self.specs[begun.device] = Spec(outcome.pod.uid, begun.name, begun.parts)
            if self.rng.random() < self.crashes:
                return self._crash()
        return ""

    def forget_ended(self) -> None:
        """Specs go with their pod, when none of its processes is left."""
        for device, spec in list(self.specs.items()):
            pod = self.watch.pods.get(spec.uid)
            is_gone = pod is None or pod.is_ended
            if is_gone and not self.judge.of_pod(spec.uid):
                del self.specs[device]

    def _decide(
        self,
        resource: str,
        ids: frozenset[str],
        allocations: tuple[Allocation, ...],
        listed: Collection[Listed],
    ) -> Start | Choose | Wait | Refuse:
        return start(
            resource,
            ids,
            allocations,
            listed,
            self._pods(),
            self.gpus if self.knows_gpus else [],
            self._started(),
            aligned=self.aligned,
        )

    def _pods(self) -> Mapping[str, PodOnNode]:
        """Return what the watch says, with what was written here and it has not seen yet."""
        pods = dict(self.watch.pods)
        for uid, chosen in list(self._chosen.items()):
            if uid not in pods or pods[uid].assignment:
                del self._chosen[uid]
            else:
                pods[uid] = replace(pods[uid], assignment=chosen.assignment)
        return pods

    def _started(self) -> dict[str, dict[str, tuple[AssignedGpu, ...]]]:
        started: dict[str, dict[str, tuple[AssignedGpu, ...]]] = {}
        for spec in self.specs.values():
            started.setdefault(spec.uid, {})[spec.container] = spec.parts
        return started

    def _refuse(self, uid: str, refusal: Refuse) -> str:
        if refusal.is_final:
            self.counts["refused for good"] += 1
        else:
            self.counts["refused and evicted"] += 1
            self.api.delete(uid)
        return refusal.reason

    def _crash(self) -> str:
        self.counts["plugin killed in the middle"] += 1
        self.restart(behind=self.rng.randrange(4))
        return "connection lost"
