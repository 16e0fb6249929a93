"""The API server's pods of one node, and watches that see them late, but in order."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from alnair.model.api_types import AssignedGpu, GpuAssignment
from alnair.sharing.matching.node_state import PodOnNode
from kit.node_state import TIME


class Api:
    """Pods, and all that ever happened to them."""

    def __init__(self) -> None:
        self.pods: dict[str, PodOnNode] = {}
        self.log: list[tuple[str, PodOnNode | None]] = []
        #: Each pod as it was last, also when it is gone.
        self.last: dict[str, PodOnNode] = {}

    def put(self, pod: PodOnNode) -> None:
        self.pods[pod.uid] = self.last[pod.uid] = pod
        self.log.append((pod.uid, pod))

    def remove(self, uid: str) -> None:
        if self.pods.pop(uid, None):
            self.log.append((uid, None))

    def delete(self, uid: str) -> None:
        """Ask the kubelet to end the pod: it is leaving until then."""
        if uid in self.pods:
            self.put(replace(self.pods[uid], is_leaving=True))

    def end(self, uid: str) -> None:
        """Its phase is Succeeded or Failed."""
        if uid in self.pods:
            self.put(replace(self.pods[uid], is_ended=True))

    def assign(self, uid: str, containers: Mapping[str, Sequence[AssignedGpu]]) -> bool:
        """Write the assignment if there is none yet; return whether it is written."""
        pod = self.pods.get(uid)
        if pod is None or pod.assignment is not None:
            return False
        parts = {name: list(own) for name, own in containers.items()}
        self.put(replace(pod, assignment=GpuAssignment(1, TIME, parts)))
        return True


class Watch:
    """What one client knows: the state at some moment of the past."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.pods: dict[str, PodOnNode] = {}
        self.position = 0

    def catch_up(self, events: int | None = None) -> list[str]:
        """Read so many events, or all; return whose they were."""
        end = len(self.api.log) if events is None else self.position + events
        seen = self.api.log[self.position : end]
        for uid, pod in seen:
            if pod is None:
                self.pods.pop(uid, None)
            else:
                self.pods[uid] = pod
        self.position += len(seen)
        return [uid for uid, _ in seen]

    def list_again(self, behind: int = 0) -> None:
        """Start anew, with what was true so many events ago: caches of the API server are late."""
        self.pods = {}
        self.position = 0
        self.catch_up(max(0, len(self.api.log) - behind))
