"""Builds histories for tests, and plain ways to compute what their metrics should be."""

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st

from alnair.history.history import End, History, JobHistory, NodeHistory, Part, PodHistory, Stay
from alnair.history.metrics.fragmentation import CAUSES, Wanted
from alnair.model.nodes import Gpu, Node

GIB = 1 << 30


def node(
    name: str,
    gpus: int = 2,
    *,
    model: str = "T4",
    cpu: int = 8000,
    memory_gib: int = 64,
    up: Sequence[tuple[float, float | None]] = ((0.0, None),),
) -> NodeHistory:
    found = Node(
        name,
        {"cpu": cpu, "memory": memory_gib * GIB, "nvidia.com/gpu": gpus},
        gpus=tuple(Gpu(f"{name}/{i}", i, model, 16384) for i in range(gpus)),
    )
    return NodeHistory(node=found, up=list(up))


def stay(
    where: str,
    begin: float,
    end: float | None = None,
    how: End = "",
    *,
    gpus: Sequence[tuple[int, float]] = ((0, 1000.0),),
    lost: float = 0.0,
    used: float | None = None,
) -> Stay:
    """A stay on a node, with (index, thousandths) of its GPUs; it is completed if it ends."""
    parts = tuple(Part(f"{where}/{index}", milli) for index, milli in gpus)
    ended: End = how or ("" if end is None else "completed")
    return Stay(where, begin, parts, end, ended, lost, used)


def history(end: float, nodes: Sequence[NodeHistory], *jobs: tuple[JobHistory, ...]) -> History:
    """A history of nodes and of what `job` makes."""
    found = History(end=end, nodes={n.node.name: n for n in nodes}, jobs={}, pods={})
    for made, *pods in jobs:
        found.jobs[made.name] = made
        found.pods.update({pod.uid: pod for pod in pods})
    return found


def job(
    name: str,
    submitted: float,
    *stays: Sequence[Stay],
    user: str = "u",
    gpus: int = 1,
    gpu_milli: int = 1000,
    finished: float | None = None,
    duration: float | None = None,
    cpu_milli: int = 1000,
    memory_mib: int = 1024,
    models: tuple[str, ...] = (),
    refused: str = "",
    gone: float | None = None,
    **more: object,
) -> tuple[JobHistory, *tuple[PodHistory, ...]]:
    """A job whose pods are alike, with the stays of each; and its pods."""
    pods = [
        PodHistory(
            uid=f"{name}-{number}",
            job=name,
            submitted=submitted,
            cpu_milli=cpu_milli,
            memory_mib=memory_mib,
            gpus=gpus,
            gpu_milli=gpu_milli if gpus else 0,
            models=models,
            stays=list(of_pod),
            refused=refused,
            gone=gone,
        )
        for number, of_pod in enumerate(stays)
    ]
    made = JobHistory(
        name=name,
        user=user,
        submitted=submitted,
        gpus=len(pods) * gpus * gpu_milli / 1000,
        finished=finished,
        duration=duration,
        pods=[pod.uid for pod in pods],
        **more,
    )
    return made, *pods


@st.composite
def any_history(draw: st.DrawFn) -> History:
    """A history that could have been: no GPU is given twice, nothing stays on lost nodes."""
    names = ["a", "b", "c"][: draw(st.integers(1, 3))]
    nodes = [
        node(name, draw(st.integers(0, 4)), model=draw(st.sampled_from(["T4", "V100"])))
        for name in names
    ]
    end = 100.0
    jobs = []
    free = {n.node.name: [1000] * len(n.node.gpus) for n in nodes}
    times = st.integers(0, 99)
    for number in range(draw(st.integers(0, 8))):
        begin, length = draw(times), draw(st.integers(1, 60))
        submitted = draw(st.integers(0, begin))
        where = draw(st.sampled_from(names))
        milli = draw(st.sampled_from([0, 250, 333, 500, 1000]))
        slots = [slot for slot, left in enumerate(free[where]) if left >= milli]
        # What is taken stays taken: enough for GPUs never to be given twice.
        if milli and slots:
            free[where][slots[0]] -= milli
        gpus = [(slots[0], float(milli))] if milli and slots else []
        ended = begin + length if begin + length < end else None
        how = draw(st.sampled_from(["completed", "preempted", "failed", "lost"]))
        stays = [stay(where, begin, ended, how if ended else "", gpus=gpus, lost=length / 2)]
        jobs.append(
            job(
                f"j{number}",
                submitted,
                stays if draw(st.booleans()) or gpus else [],
                user=draw(st.sampled_from("xyz")),
                gpus=int(bool(milli)),
                gpu_milli=milli,
                finished=ended if how == "completed" else None,
                duration=draw(st.sampled_from([None, 0.5, float(length)])),
                cpu_milli=draw(st.sampled_from([0, 1000, 4000])),
                memory_mib=draw(st.sampled_from([0, 1024, 40960])),
                models=draw(st.sampled_from([(), ("T4",), ("T4", "P100")])),
                gang=draw(st.booleans()),
                util=draw(st.sampled_from([None, 0.0, 50.0])),
            )
        )
    return history(end, nodes, *jobs)


def there(found: Stay, time: float) -> bool:
    return found.begin <= time and (found.end is None or time < found.end)


class Left(NamedTuple):
    """What a node has left."""

    cpu_milli: int
    memory_mib: int
    gpus: tuple[float, ...]
    model: str


def left_at(found: History, time: float) -> list[Left]:
    """What the nodes have left at a moment."""
    left = []
    for name, item in found.nodes.items():
        if not any(begin <= time and (to is None or time < to) for begin, to in item.up):
            continue
        gpus = {gpu.uuid: 1000.0 for gpu in item.node.gpus}
        cpu, memory = item.node.allocatable["cpu"], item.node.allocatable["memory"] // (1 << 20)
        for pod in found.pods.values():
            for one in pod.stays:
                if one.node == name and there(one, time):
                    cpu -= pod.cpu_milli
                    memory -= pod.memory_mib
                    for part in one.gpus:
                        gpus[part.uuid] -= part.milli
        model = item.node.gpus[0].model if item.node.gpus else ""
        left.append(Left(cpu, memory, tuple(gpus.values()), model))
    return left


def stranded_at(nodes: Sequence[Left], mix: Sequence[Wanted]) -> dict[str, float]:
    """The GPUs stranded by each cause, node by node and class by class, as the page defines it."""
    found = dict.fromkeys(CAUSES, 0.0)
    for left in nodes:
        for wanted in mix:
            large = [gpu for gpu in left.gpus if gpu >= wanted.gpu_milli]
            lacks = {
                "cpu": left.cpu_milli < wanted.cpu_milli,
                "memory": left.memory_mib < wanted.memory_mib,
                "gpus": len(large) < wanted.gpus,
            }
            causes = [name for name, is_so in lacks.items() if is_so]
            everything = wanted.share * sum(left.gpus) / 1000
            useful = wanted.share * sum(large) / 1000
            if not wanted.gpus:
                found["no-gpu-asked"] += everything
            elif wanted.models and left.model not in wanted.models:
                found["model"] += everything
            elif len(causes) > 1:
                found["several"] += everything
            elif causes == ["cpu"]:
                found["cpu"] += everything
            else:
                found["gpu-too-small"] += everything - useful
                if causes:
                    found["memory" if causes == ["memory"] else "gpu-too-few"] += useful
    return found
