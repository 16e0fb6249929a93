"""Lets containers start with the GPUs that they are assigned, and no others.

All that decides is read first; what follows from it is then done without a pause, so that two
containers that start at once cannot both take the same room.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn, Protocol

from alnair.kube.objects.annotations import rfc3339
from alnair.model import names
from alnair.model.api_types import AssignedGpu, GpuAssignment
from alnair.node.kubelet import checkpoint
from alnair.node.kubelet.cdi import KIND, CdiSpecs, Edits, StartedContainer
from alnair.node.kubelet.checkpoint import CheckpointError
from alnair.node.kubelet.plugin_server import StartRefusedError
from alnair.node.kubelet.pod_resources import PodResources, PodResourcesError
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.node.vgpu.server import VgpuServer
from alnair.processes.agent.device_plugin import slices
from alnair.processes.agent.device_plugin.pods_on_node import PodsOnNode
from alnair.sharing.matching import starting
from alnair.sharing.matching.choice import choose
from alnair.sharing.matching.node_state import Allocation, NodeGpu, PodOnNode
from alnair.sharing.matching.other_plugins import Given, given_by_others
from alnair.sharing.matching.outcomes import Choose, ContainerStart, Refuse, Start, Wait
from alnair.sharing.matching.room import holds

#: Seconds for which a start is held before the kubelet is told to try again; it gives up at 30.
_HOLD: Final = 10.0
#: Seconds between looks while it is held; a change of a pod is looked at sooner.
_LOOK: Final = 0.2
#: Seconds after which a pod that could not start is replaced: longer than what leaves takes to go.
_REPLACE_AFTER: Final = 40.0

#: The same where its memory is lent: the borrower is given time, and then ended.
_REPLACE_LENT_AFTER: Final = 120.0

_log = logging.getLogger(__name__)


class Lent(Wait, frozen=True):
    """Memory that is its own by now is lent, and comes back."""


class Unprepared(Wait, frozen=True):
    """What it needs cannot be written now: the kubelet is told at once."""


class Choices(Protocol):
    """Writes down what is chosen for pods of other schedulers."""

    async def write(self, pod: PodOnNode, assignment: GpuAssignment) -> str:
        """Write it into the pod's annotation; return why not, or ""."""
        ...


class Places(Protocol):
    """Says what containers get."""

    def whole(self, uuids: Iterable[str]) -> Edits:
        """What a container with whole GPUs gets."""
        ...

    def sliced(self, pod: PodOnNode, part: AssignedGpu, slices_name: str) -> Edits:
        """What a container with a slice gets."""
        ...

    def counted(self, uuids: Iterable[str], slices_name: str) -> Edits:
        """What a container with whole GPUs gets whose calls are counted."""
        ...

    def missing(self, pod: PodOnNode) -> str:
        """What the node lacks for a pod, or ""."""
        ...


class Starts:
    """Decides about starts, and remembers what was let start.

    Args:
        server: Has the slices.
        specs: The files that say what containers get.
        places: What is in them.
        resources: The kubelet, asked who holds what.
        folder: Of device plugins, with the kubelet's checkpoint.
        gpus: Those of the node, as they are now.
        choices: Writes down what is chosen here.
        refused: Called with (pod, sentence, whether it is to be replaced).
        aligned: Whether the kubelet aligns devices by NUMA node.

    Attributes:
        started: Pod uid → container → what was let start.
    """

    def __init__(
        self,
        server: VgpuServer,
        specs: CdiSpecs,
        places: Places,
        resources: PodResources,
        folder: Path,
        gpus: Callable[[], Sequence[NodeGpu]],
        choices: Choices,
        refused: Callable[[OwningPod, str, bool], None],
        *,
        aligned: bool = False,
    ) -> None:
        self._server = server
        self._specs = specs
        self._places = places
        self._resources = resources
        self._folder = folder
        self._gpus = gpus
        self._choices = choices
        self._refused = refused
        self._aligned = aligned
        self.pods: PodsOnNode | None = None
        self.started: dict[str, dict[str, StartedContainer]] = {}
        #: Pod uid → monotonic seconds of its first start that was not let go.
        self._waiting: dict[str, float] = {}
        #: Pods whose replacement was asked for: the kubelet tries a start that failed again.
        self._replaced: set[str] = set()
        #: What other plugins gave, as of the last decision.
        self._others: Given = {}

    def take_over(self) -> None:
        """Read what an agent before this one let start.

        Raises:
            OSError: The folder of CDI cannot be used.
        """
        for one in self._specs.load():
            if one.mig:
                continue
            self.started.setdefault(one.pod_uid, {})[one.container] = one

    def gone(self, there: Mapping[str, PodOnNode], also: Iterable[str] = ()) -> set[str]:
        """Return the uids of pods that were let start, and have ended or are not there any more.

        Args:
            there: The pods of the node, by uid.
            also: Uids of further pods that were let start.
        """
        uids = {*self.started, *self._served().values(), *also}
        return {uid for uid in uids if uid not in there or there[uid].is_ended}

    def forget(self, pod_uid: str) -> None:
        """Take back what a pod's containers had; none of its processes is left."""
        self._waiting.pop(pod_uid, None)
        self._replaced.discard(pod_uid)
        self._server.loans.unclaim(pod_uid)
        started = self.started.pop(pod_uid, {}).values()
        self._specs.remove(one.device for one in started)
        served = {name for name, uid in self._served().items() if uid == pod_uid}
        # A damaged one is not served, and one whose start failed half-way is not noted as started.
        for name in served | {one.slices for one in started if one.slices}:
            self._take_back(name)

    def _served(self) -> dict[str, str]:
        """Slices that were made here, by name, with the uid of their pod."""
        return {
            name: uid
            for name, one in self._server.containers.items()
            # Slices of a pod that somebody made by hand have other names.
            if (uid := one.assignment.pod.uid) and name.startswith(uid)
        }

    async def start(self, resource: str, ids: frozenset[str]) -> None:
        """Let the container with these ids start.

        Raises:
            StartRefusedError: It may not, now or ever; says why.
        """
        began = time.monotonic()
        while True:
            owner, decision = await self._decide(resource, ids)
            if decision is None:
                return
            match await self._choose(decision) if isinstance(decision, Choose) else decision:
                case Refuse() as refused:
                    self._refuse(owner, refused)
                case Unprepared() as failed:
                    self._give_up(owner, failed)
                case Wait() as waits:
                    if time.monotonic() - began > _HOLD:
                        self._give_up(owner, waits)
                    await self._pods.changed(_LOOK)

    @property
    def _pods(self) -> PodsOnNode:
        assert self.pods is not None
        return self.pods

    async def _decide(
        self, resource: str, ids: frozenset[str]
    ) -> tuple[str, Choose | Wait | Refuse | None]:
        """Let start what may; return who may not, and why.

        None: it may, or another plugin gave the container its GPUs, before ours took its place.
        """
        try:
            held = await self._resources.list()
            allocations = checkpoint.read(self._folder)
        except (PodResourcesError, CheckpointError) as error:
            return "", Wait(str(error))
        listed = [
            (one.namespace, one.pod, one.container)
            for one in held
            if one.resource == resource and one.ids & ids
        ]
        asked = [one for one in allocations if one.resource == resource and one.ids & ids]
        if asked and resource == names.GPU and not any(map(_is_ours, asked)):
            return "", None
        self._others = self._given_by_others(allocations)
        of_resource = [one for one in allocations if one.resource == resource]
        # The kubelet forgets ids whose Allocate is under way when a pod ends meanwhile, and gives
        # them to the next pod as well. Each has an answer of its own, so all of them are prepared.
        owners = sorted({one.pod_uid for one in asked}) or [""]
        for owner in owners:
            others = set(owners) - {owner}
            found = self._decide_for(
                resource,
                ids,
                [one for one in of_resource if one.pod_uid not in others],
                self._without(listed, others),
                owner,
            )
            if not isinstance(found, Start):
                return owner, found
            try:
                self._let_start(found)
            except OSError as error:
                return owner, Unprepared(f"the start cannot be prepared: {error}")
        return "", None

    def _without(
        self, listed: Iterable[starting.Listed], others: Collection[str]
    ) -> list[starting.Listed]:
        """Leave out the containers of these pods."""
        known = (self._pods.by_uid.get(uid) for uid in others)
        titles = {(pod.namespace, pod.name) for pod in known if pod is not None}
        return [one for one in listed if one[:2] not in titles]

    def _decide_for(
        self,
        resource: str,
        ids: frozenset[str],
        allocations: Collection[Allocation],
        listed: Collection[starting.Listed],
        owner: str,
    ) -> Start | Choose | Wait | Refuse:
        found = starting.start(
            resource,
            ids,
            allocations,
            listed,
            self._pods.by_uid,
            self._gpus(),
            self._parts_beside({owner}),
            aligned=self._aligned,
        )
        if isinstance(found, Start) and (missing := self._places.missing(found.pod)):
            return Wait(missing)
        if isinstance(found, Start) and (lent := self._lent(found.pod)):
            return Lent(f"{found.pod.title} has no room yet: {lent}: the kubelet tries again")
        return found

    def _lent(self, pod: PodOnNode) -> str:
        """Ask for the memory of a pod's slices; say what of it is lent now, or ""."""
        held = holds(pod, {name: s.parts for name, s in self.started.get(pod.uid, {}).items()})
        needs = {uuid: one.memory_mib << 20 for uuid, one in held.items() if not one.whole}
        return self._server.loans.claim(pod.uid, needs)

    def others(self) -> Given | None:
        """Return the GPUs that other plugins gave to containers; None: that cannot be known now."""
        try:
            return self._given_by_others(checkpoint.read(self._folder))
        except CheckpointError:
            return None

    def _given_by_others(self, allocations: Iterable[Allocation]) -> Given:
        return given_by_others(allocations, self._pods.by_uid, self._gpus(), f"{KIND}=")

    def parts(self, others: Given) -> Given:
        """Return what containers have that were let start here, and those of other plugins."""
        found = {
            uid: {name: one.parts for name, one in containers.items()}
            for uid, containers in self.started.items()
        }
        for uid, given in others.items():
            found[uid] = {**given, **found.get(uid, {})}
        return found

    def _parts_beside(self, own: Collection[str]) -> Given:
        """Return the same, without what other plugins gave to pods that start here now."""
        return self.parts({uid: given for uid, given in self._others.items() if uid not in own})

    async def _choose(self, wanted: Choose) -> Refuse | Wait | None:
        """Choose for a pod that no scheduler of ours placed; None: look again."""
        pod = wanted.pod
        found = choose(
            pod,
            self._gpus(),
            self._pods.by_uid.values(),
            self._parts_beside({pod.uid}),
            wanted.allocated,
        )
        if isinstance(found, Refuse | Wait):
            return found
        chosen = GpuAssignment(1, rfc3339(time.time()), found)
        # Taken in before it is written, so that nobody is given the same room meanwhile.
        self._pods.wrote(pod.uid, chosen)
        problem = "the start was given up"
        try:
            problem = await self._choices.write(pod, chosen)
        finally:
            if problem:
                self._pods.wrote(pod.uid, None)
        return Wait(f"the choice of a GPU cannot be written: {problem}") if problem else None

    def _let_start(self, decision: Start) -> None:
        pod = decision.pod
        for one in decision.containers:
            if not _is_ours(one):
                raise StartRefusedError(
                    f"the kubelet's checkpoint does not say what {pod.title} was answered for "
                    f"container {one.name!r}: delete the pod"
                )
            is_slice = not any(part.whole for part in one.parts)
            name = slices.name(pod.uid, one.name) if is_slice or pod.counts_calls else ""
            if name:
                said = self._server.prepare(slices.slices(pod, one.name, one.parts))
                if said:
                    raise OSError(said)
            if is_slice:
                edits = self._places.sliced(pod, one.parts[0], name)
            elif name:
                edits = self._places.counted((part.uuid for part in one.parts), name)
            else:
                edits = self._places.whole(part.uuid for part in one.parts)
            device = one.device.removeprefix(f"{KIND}=")
            started = StartedContainer(
                pod.uid, pod.namespace, pod.name, one.name, one.parts, device, name
            )
            self._specs.write(started, edits)
            before = self.started.setdefault(pod.uid, {}).get(one.name)
            if before is not None and before.device != device:
                self._specs.remove([before.device])  # the kubelet has lost its note, and begun anew
            self.started[pod.uid][one.name] = started
        self._waiting.pop(pod.uid, None)

    def _refuse(self, owner: str, decision: Refuse) -> NoReturn:
        if pod := self._pods.owner(owner):
            self._tell(pod, decision.reason, replace=not decision.is_final)
        raise StartRefusedError(decision.reason)

    def _give_up(self, owner: str, decision: Wait) -> NoReturn:
        """Tell the kubelet to try again; a pod that tried for long is replaced."""
        pod = self._pods.owner(owner)
        if pod is not None:
            since = self._waiting.setdefault(pod.uid, time.monotonic() - _HOLD)
            patience = _REPLACE_LENT_AFTER if isinstance(decision, Lent) else _REPLACE_AFTER
            if time.monotonic() - since > patience:
                self._tell(pod, decision.reason, replace=True)
        raise StartRefusedError(decision.reason)

    def _tell(self, pod: OwningPod, reason: str, *, replace: bool) -> None:
        is_first = replace and pod.uid not in self._replaced
        if is_first:
            self._replaced.add(pod.uid)
        self._refused(pod, reason, is_first)

    def _take_back(self, name: str) -> None:
        try:
            self._server.remove(name)
        except OSError as error:
            _log.warning("the slices of %s are not taken back: %s", name, error)


def _is_ours(given: Allocation | ContainerStart) -> bool:
    """Tell whether our own `Allocate` answered for it."""
    return given.device.startswith(f"{KIND}=")
