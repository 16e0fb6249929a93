"""The cases of `placement.py`: traces as published, and variants of them made from a seed."""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from alnair.traces import arrivals, openb_files
from alnair.traces.arrivals import Arrival
from alnair.traces.openb import WHOLE, TraceNode, TracePod

DATA = Path(__file__).parents[1] / "data" / "openb"
TRACES = (
    "default",
    "gpushare40",
    "gpushare60",
    "multigpu20",
    "multigpu30",
    "gpuspec10",
    "gpuspec20",
    "cpu050",
    "cpu100",
)
#: Seeds whose published orders are here; any other seed makes orders of our own.
PUBLISHED = (42, 43, 44)
#: Demand that lists are inflated to, as a part of the GPUs.
TUNE = 1.3
#: Part of the pods with GPUs that name the scarce model.
SCARCE = 1 / 3

Nodes = Sequence[TraceNode]
Pods = Sequence[TracePod]


class Case(msgspec.Struct, frozen=True):
    """Nodes in the order that breaks ties, pods as listed, and as they arrive."""

    nodes: tuple[TraceNode, ...]
    pods: tuple[TracePod, ...]
    arrivals: tuple[Arrival, ...]
    order: tuple[str, ...]


def case(trace: str, seed: int, variant: str = "") -> Case:
    """Return a case.

    Args:
        trace: One of `TRACES`.
        seed: 42, 43 and 44 are the published orders, unless there is a variant.
        variant: One of `variants()`, or empty.
    """
    path = DATA / f"openb_pod_list_{trace}.csv.gz"
    found = openb_files.load(None, path if path.exists() else None)
    if not variant and seed in PUBLISHED:
        pods, nodes = (_names(f"{trace}-{seed}.{what}") for what in ("pods", "nodes"))
        return Case(
            found.nodes,
            found.pods,
            tuple(arrivals.in_given_order(found.pods, pods, f"{trace}-{seed}.pods")),
            tuple(arrivals.nodes_in_given_order(found.nodes, nodes, f"{trace}-{seed}.nodes")),
        )
    nodes, pods = found.nodes, found.pods
    if variant:
        nodes, pods = variants()[variant](nodes, pods, random.Random(f"{variant}/{seed}"))
    return in_own_orders(nodes, pods, seed)


def in_own_orders(nodes: Nodes, pods: Pods, seed: int) -> Case:
    """Return the case with orders of ours."""
    return Case(
        tuple(nodes),
        tuple(pods),
        tuple(
            arrivals.in_seeded_order(pods, tune=TUNE, capacity=arrivals.capacity(nodes), seed=seed)
        ),
        tuple(arrivals.nodes_in_seeded_order(nodes, seed)),
    )


def other_pods(own: Case, kept: int, seed: int) -> tuple[Arrival, ...]:
    """Return the arrivals with others after the first `kept`: shuffled, of other sizes."""
    draw = random.Random(f"other/{seed}")
    rest = [a.pod for a in own.arrivals[kept:]]
    _, resized = _redrawn(own.nodes, rest, draw)
    shuffled = list(resized)
    draw.shuffle(shuffled)
    others = (Arrival(f"other-{i}", pod) for i, pod in enumerate(shuffled))
    return (*own.arrivals[:kept], *others)


def _names(order: str) -> list[str]:
    path = DATA / "orders" / f"{order}.txt.gz"
    return openb_files.names(str(path) if path.exists() else order)


# --- variants -------------------------------------------------------------------------------------

Variant = Callable[[Nodes, Pods, random.Random], tuple[Nodes, Pods]]


def variants() -> Mapping[str, Variant]:
    """Return the variants by name."""
    scarce = {f"scarce-{m}": _scarce(m) for m in ("T4", "G3", "P100", "V100M32", "V100M16")}
    scaled = {f"x{times}": _scaled(times) for times in (2, 4, 8)}
    return {
        "shares": _redrawn,
        "cpu2": _doubled_cpu,
        "half": _half,
        "models": _shuffled_models,
        **scarce,
        **scaled,
    }


def _redrawn(nodes: Nodes, pods: Pods, draw: random.Random) -> tuple[Nodes, Pods]:
    """Give each size of shares another one: 50 to 950 milli in tens, none to two."""
    sizes = sorted({p.gpu_milli for p in pods if 0 < p.gpu_milli < WHOLE})
    new = draw.sample(range(50, 960, 10), len(sizes))
    becomes = dict(zip(sizes, new, strict=True))
    return nodes, [_replace(p, gpu_milli=becomes.get(p.gpu_milli, p.gpu_milli)) for p in pods]


def _doubled_cpu(nodes: Nodes, pods: Pods, draw: random.Random) -> tuple[Nodes, Pods]:
    """Double the cores of every node."""
    return [msgspec.structs.replace(n, cpu_milli=2 * n.cpu_milli) for n in nodes], pods


def _half(nodes: Nodes, pods: Pods, draw: random.Random) -> tuple[Nodes, Pods]:
    """Keep every second node of the list."""
    return nodes[::2], pods


def _shuffled_models(nodes: Nodes, pods: Pods, draw: random.Random) -> tuple[Nodes, Pods]:
    """Deal the GPU models out among the nodes anew."""
    models = [n.model for n in nodes if n.gpus]
    draw.shuffle(models)
    dealt = iter(models)
    return [msgspec.structs.replace(n, model=next(dealt)) if n.gpus else n for n in nodes], pods


def _scarce(model: str) -> Variant:
    def variant(nodes: Nodes, pods: Pods, draw: random.Random) -> tuple[Nodes, Pods]:
        """Let a third of the pods with GPUs ask for this model."""
        asking = [
            _replace(p, models=(model,), gpu_spec=model) if p.gpus and draw.random() < SCARCE else p
            for p in pods
        ]
        return nodes, asking

    return variant


def _scaled(times: int) -> Variant:
    def variant(nodes: Nodes, pods: Pods, draw: random.Random) -> tuple[Nodes, Pods]:
        """Take so many of each node and of each pod."""
        return (
            [msgspec.structs.replace(n, name=f"{n.name}-{i}") for i in range(times) for n in nodes],
            [_replace(p, name=f"{p.name}-{i}") for i in range(times) for p in pods],
        )

    return variant


def _replace(pod: TracePod, **changes: object) -> TracePod:
    return msgspec.structs.replace(pod, **changes)
