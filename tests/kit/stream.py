"""Pods that come one after another to an engine with few plugins, for tests of scores."""

from alnair.model.action import Bind
from alnair.model.nodes import Node
from alnair.model.workload import PodSpec
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.arguments import made
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.profiles import registry
from kit import make

PLUGINS = (
    "PrioritySort",
    "SchedulingGates",
    "NodeUnschedulable",
    "NodeAffinity",
    "NodeResourcesFit",
    "GpuShare",
)
IN_ORDER = {"NodeResourcesFit": {"gpuNodesInOrder": True}}


def profile(*more: str) -> Profile:
    plugins = registry()
    chosen = (*PLUGINS, *more)
    return Profile("test", [made(plugins[n], IN_ORDER.get(n, {}), n) for n in chosen])


class Stream:
    """Pods one after another; nodes win ties in the order given."""

    def __init__(self, *nodes: Node) -> None:
        self.profile = profile("OpportunityCost")
        self.engine = Engine([self.profile], order=[n.name for n in nodes], patience=None)
        self.engine.learn([events.NodeChanged(n) for n in nodes], 0.0)
        self.count = 0

    def place(self, spec: PodSpec) -> tuple[str, list[int]]:
        """Return node and GPUs; an empty name if there was no room, and the pod goes away."""
        self.count += 1
        pod = make.pod(f"p{self.count}", spec, scheduler="test", created=float(self.count))
        for action in self.engine.step([events.PodChanged(pod)], float(self.count)):
            if isinstance(action, Bind):
                self.engine.step([events.BindDone(pod.uid)], float(self.count))
                return action.node, [s.index for _, shares in action.assignment for s in shares]
        self.engine.step([events.PodGone(pod.uid)], float(self.count))
        return "", []

    def end(self, uid: str) -> None:
        """Let a pod end."""
        self.engine.step([events.PodGone(uid)], float(self.count))

    def hear_of(self, *specs: PodSpec) -> None:
        """Let pods come and go at once."""
        pods = [
            make.pod(f"h{self.count}-{i}", spec, scheduler="test", created=float(self.count))
            for i, spec in enumerate(specs)
        ]
        batch = [e for p in pods for e in (events.PodChanged(p), events.PodGone(p.uid))]
        self.engine.step(batch, float(self.count))
        self.count += 1

    def pass_by(self, count: int, node: str) -> None:
        """Let pods come, run on a node and leave, one after another."""
        for i in range(count):
            pod = make.pod(f"b{self.count}-{i}", make.spec(cpu=1), scheduler="test", node=node)
            self.engine.step([events.PodChanged(pod)], float(self.count))
            self.engine.step([events.PodGone(pod.uid)], float(self.count))
        self.count += 1


def share(percent: int, cpu: int = 100, **rest: object) -> PodSpec:
    return make.spec(cpu=cpu, slice_mib=percent * 100, compute=percent, **rest)  # type: ignore[arg-type]
