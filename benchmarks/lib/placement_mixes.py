"""Mixes of `placement_regimes.py`: the openb trace with something else in short supply.

Each regime has mixes that the policy's constants were chosen on, and others that were kept aside
and not run before: half of all.
"""

import random
from collections.abc import Mapping, Sequence

import msgspec

from alnair.traces import openb_files
from alnair.traces.openb import WHOLE, TraceNode, TracePod
from lib import placement_cases as cases
from lib.placement_cases import Nodes, Pods, Variant

#: Ends the names of mixes that are kept aside, below.
_ASIDE = "*"


class Mix(msgspec.Struct, frozen=True):
    """A list and a way to change it.

    Attributes:
        regime: what there is little of, or much.
        trace: the list that is changed.
        change: how.
        aside: whether it was kept aside while constants were chosen.
    """

    regime: str
    trace: str
    change: Variant
    aside: bool


def mixes() -> Mapping[str, Mix]:
    """Return the mixes by name, those of a regime together."""
    found: dict[str, Mix] = {}

    def put(regime: str, name: str, change: Variant, trace: str = "default") -> None:
        found[name.rstrip(_ASIDE)] = Mix(regime, trace, change, name.endswith(_ASIDE))

    for times in ("2", "2.2*", "2.5", "3*"):
        put("CPU", f"cpu-pods-{times}", _more_pods_without_gpus(_number(times)))
    for part in ("0.9*", "0.8", "0.7*", "0.6"):
        put("CPU", f"cores-{part}", _scaled_nodes(cores=_number(part)))
    for times in ("1.5", "2*"):
        put("CPU", f"gpu-cores-{times}", _gpu_pods_with_more_cores(_number(times)))
    for part in ("0.8", "0.7*", "0.6", "0.5*"):
        put("memory", f"memory-{part}", _scaled_nodes(memory=_number(part)))
    put("CPU and memory", "both-0.7", _scaled_nodes(cores=0.7, memory=0.6))
    put("CPU and memory", "both-0.8*", _scaled_nodes(cores=0.8, memory=0.65))
    put("CPU-only nodes", "cpu-nodes-100", _with_cpu_nodes(100, 2.0))
    put("CPU-only nodes", "cpu-nodes-100-3*", _with_cpu_nodes(100, 3.0))
    put("CPU-only nodes", "cpu-nodes-300-4", _with_cpu_nodes(300, 4.0))
    put("CPU-only nodes", "cpu-nodes-300*", _with_cpu_nodes(300, 2.0))
    known = cases.variants()
    put("sharing", "shares", known["shares"], "gpushare40")
    put("sharing", "shares-60*", known["shares"], "gpushare60")
    put("multi-GPU", "multi-half", known["half"], "multigpu20")
    put("multi-GPU", "multi-shares*", known["shares"], "multigpu30")
    put("models", "models", known["models"], "gpuspec10")
    put("models", "models-20*", known["models"], "gpuspec20")
    put("scarce model", "scarce-T4", known["scarce-T4"])
    put("scarce model", "scarce-V100M32*", known["scarce-V100M32"])
    return found


def case(name: str, seed: int) -> cases.Case:
    """Return a mix as a case, in orders of ours."""
    mix = mixes()[name]
    path = cases.DATA / f"openb_pod_list_{mix.trace}.csv.gz"
    read = openb_files.load(None, path if path.exists() else None)
    nodes, pods = mix.change(read.nodes, read.pods, random.Random(f"{name}/{seed}"))
    return cases.in_own_orders(nodes, pods, seed)


def _number(text: str) -> float:
    return float(text.rstrip(_ASIDE))


def _more_pods_without_gpus(times: float) -> Variant:
    def change(nodes: Nodes, pods: Pods, draw: random.Random) -> tuple[Nodes, Pods]:
        """Have pods without GPUs so many times, in parts by chance."""
        return nodes, _repeated(pods, times, draw)

    return change


def _repeated(pods: Pods, times: float, draw: random.Random) -> Sequence[TracePod]:
    found = list(pods)
    for pod in pods:
        if not pod.gpus:
            copies = int(times - 1) + (draw.random() < (times - 1) % 1)
            found += [
                msgspec.structs.replace(pod, name=f"{pod.name}-again-{i}") for i in range(copies)
            ]
    return found


def _scaled_nodes(cores: float = 1.0, memory: float = 1.0) -> Variant:
    def change(nodes: Nodes, pods: Pods, draw: random.Random) -> tuple[Nodes, Pods]:
        """Leave nodes a part of their cores and memory."""
        return [
            msgspec.structs.replace(
                n, cpu_milli=int(n.cpu_milli * cores), memory_mib=int(n.memory_mib * memory)
            )
            for n in nodes
        ], pods

    return change


def _gpu_pods_with_more_cores(times: float) -> Variant:
    def change(nodes: Nodes, pods: Pods, draw: random.Random) -> tuple[Nodes, Pods]:
        """Let pods with GPUs ask for so many times the cores."""
        return nodes, [
            msgspec.structs.replace(p, cpu_milli=int(p.cpu_milli * times)) if p.gpus else p
            for p in pods
        ]

    return change


def _with_cpu_nodes(count: int, times: float) -> Variant:
    def change(nodes: Nodes, pods: Pods, draw: random.Random) -> tuple[Nodes, Pods]:
        """Add nodes without GPUs, and have pods without GPUs so many times."""
        added = [
            TraceNode(f"cpu-node-{i:04d}", cores * WHOLE, 4 * cores * 1024, 0, "")
            for i, cores in enumerate(draw.choices((64, 96, 128), k=count))
        ]
        return [*nodes, *added], _repeated(pods, times, draw)

    return change
