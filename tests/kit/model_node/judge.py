"""Judges what runs: on the GPUs that the API server says, and never more than a GPU has.

Shares no code with what it judges: it knows processes and annotations, and no booking.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from alnair.model import names
from alnair.model.api_types import AssignedGpu
from alnair.model.gpu_demand import ContainerGpus
from alnair.sharing.matching.node_state import PodOnNode
from kit.node_state import MEMORY

#: Pod uid and container.
Who = tuple[str, str]


class Judge:
    """Sees every process start and end."""

    def __init__(self) -> None:
        self.running: dict[Who, tuple[tuple[AssignedGpu, ...], bool]] = {}
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def starts(
        self, who: Who, container: ContainerGpus, parts: Iterable[AssignedGpu], pod: PodOnNode
    ) -> None:
        """A process of the container runs with what its CDI spec says."""
        own = tuple(parts)
        said = tuple(pod.assignment.containers.get(who[1], ())) if pod.assignment else ()
        self.counts["containers started"] += bool(own)
        if _amounts(own) != [container.resources.get(name, 0) for name in names.GPU_REQUESTS]:
            self.counts["with other limits than its spec"] += 1
            self.wrong.append(f"{who} runs with {own}, and asks for {container.resources}")
        if own != said:
            self.counts["on another GPU than assigned"] += 1
            self.wrong.append(f"{who} runs with {own}, and was assigned {said}")
        hard = pod.demand is not None and pod.demand.hard
        self.running[who] = (own, hard)
        for part in own:
            self._full(part.uuid)

    def ends(self, who: Who) -> None:
        self.running.pop(who, None)

    def takes(self, claimed: str, names: Iterable[str], caller: Who) -> None:
        """A call of the kubelet was taken to be about these containers of a pod."""
        if claimed != caller[0] or caller[1] not in names:
            self.counts["taken for another pod"] += 1
            self.wrong.append(f"{caller} was taken for {claimed}")

    def is_chosen_in_vain(self, caller: Who, outcome: object) -> None:
        """GPUs were chosen for a pod that cannot start on them."""
        self.counts["chosen in vain"] += 1
        self.wrong.append(f"{caller} has GPUs that were just chosen, and gets {outcome}")

    def is_far(self, who: Who) -> None:
        """A container's GPUs are near other cores than the kubelet gave it."""
        self.counts["far from its cores"] += 1
        self.wrong.append(f"{who} has GPUs far from its cores")

    def waits_for_ever(self, waiting: Mapping[Who, str]) -> None:
        for who, why in waiting.items():
            self.counts["waiting for ever"] += 1
            self.wrong.append(f"{who} waits for ever: {why}")

    def of_pod(self, uid: str) -> list[Who]:
        return sorted(who for who in self.running if who[0] == uid)

    def _full(self, uuid: str) -> None:
        memory = compute = slices = 0
        whole: list[Who] = []
        for who, (parts, hard) in self.running.items():
            for part in parts:
                if part.uuid == uuid and part.whole:
                    whole.append(who)
                elif part.uuid == uuid:
                    slices += 1
                    memory += part.memory_mib
                    compute += part.compute if hard else 0
        if memory > MEMORY or compute > 100 or len(whole) > 1 or (whole and slices):
            self.counts["over-committed"] += 1
            self.wrong.append(f"{uuid}: {memory} MiB, {compute} %, whole {whole}, {slices} slices")


def _amounts(parts: Iterable[AssignedGpu]) -> list[int]:
    own = list(parts)
    slices = [part for part in own if not part.whole]
    return [
        len(own) - len(slices),
        sum(part.memory_mib for part in slices),
        sum(part.compute for part in slices),
    ]
