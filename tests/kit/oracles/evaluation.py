"""The documented semantics once more in plain Python: one node after the other, no columns.

Slow and simple on purpose, and independent of `alnair.scheduler`: what both say is likely right.
"""

import hashlib
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from alnair.model import names
from alnair.model.nodes import Gpu, Node, Taint
from alnair.model.workload import GpuDemand, HostPort, PodSpec, Requirement, Term, Toleration


class Held:
    """What a placed pod holds: its spec, and the positions of its GPUs on the node."""

    def __init__(self, spec: PodSpec, whole: Sequence[int] = (), shared: int | None = None) -> None:
        self.spec = spec
        self.whole = tuple(whole)
        self.shared = shared


class Oracle:
    """A cluster as dictionaries; `seed` and the rest as the scheduler has them.

    The defaults are those of the balanced profile.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        strategy: str = "LeastAllocated",
        gpu_nodes_in_order: bool = True,
        even: bool = False,
        images: bool = True,
        packs: bool = True,
        smallest_first: bool = False,
        nvlink_only: bool = True,
        break_ties: Iterable[str] = (),
    ) -> None:
        self.packs = packs
        self.smallest_first = smallest_first
        self.nvlink_only = nvlink_only
        self.break_ties = frozenset(break_ties)
        self.even = even
        self.images = images
        self.gpu_nodes_in_order = gpu_nodes_in_order
        self.key = seed.to_bytes(8, "big", signed=True)
        self.strategy = strategy
        self.nodes: dict[str, Node] = {}
        self.held: dict[str, dict[str, Held]] = {}

    def on(self, node: Node) -> list[Held]:
        return list(self.held.get(node.name, {}).values())

    def best(self, spec: PodSpec) -> str | None:
        """Return the node with the highest score; ties go by the hash of the name."""
        feasible = [node for node in self.nodes.values() if self.fits(spec, node)]
        if not feasible:
            return None
        scores = self.scores(spec, feasible)
        best = max(scores.values())
        return min((n.name for n in feasible if scores[n.name] == best), key=self._rank)

    def _rank(self, name: str) -> bytes:
        return hashlib.blake2b(name.encode(), key=self.key).digest()

    # --- filters ----------------------------------------------------------------------------------

    def fits(self, spec: PodSpec, node: Node) -> bool:
        if spec.node_name and spec.node_name != node.name:
            return False
        cordon = Taint("node.kubernetes.io/unschedulable", "NoSchedule")
        if node.unschedulable and not tolerates(spec.tolerations, cordon):
            return False
        hard = [t for t in node.taints if t.effect in ("NoSchedule", "NoExecute")]
        if not all(tolerates(spec.tolerations, t) for t in hard):
            return False
        if any(node.labels.get(k) != v for k, v in spec.node_selector):
            return False
        required = spec.affinity.required if spec.affinity else None
        if required is not None and not any(matches(t, node) for t in required):
            return False
        taken = [port for h in self.on(node) for port in h.spec.ports]
        if any(in_the_way(wanted, port) for wanted in spec.ports for port in taken):
            return False
        for name, amount in spec.requests:
            used = sum(dict(h.spec.requests).get(name, 0) for h in self.on(node))
            if used + amount > node.allocatable.get(name, 0):
                return False
        return spec.gpu is None or bool(self.gpu_choices(spec.gpu, node))

    def gpu_choices(
        self, demand: GpuDemand, node: Node
    ) -> list[tuple[int | None, tuple[int, ...]]]:
        """Return every way to give the demand GPUs of the node: the slice's, and the whole ones."""
        gpus = gpus_of(node)
        usable = [i for i, g in enumerate(gpus) if accepts(demand, g)]
        free = self.free(demand, node)
        slots: list[int | None] = [None]
        if demand.memory_mib:
            slots = [i for i in usable if self._takes(demand, node, i, gpus[i])]
        return [
            (slot, whole)
            for slot in slots
            for whole in itertools.combinations([i for i in free if i != slot], demand.whole)
        ]

    def free(self, demand: GpuDemand, node: Node) -> list[int]:
        """Return the accepted GPUs that nobody uses."""
        return [
            i
            for i, gpu in enumerate(gpus_of(node))
            if accepts(demand, gpu) and not self.tenants(node, i) and not self.holders(node, i)
        ]

    def tenants(self, node: Node, slot: int) -> list[GpuDemand]:
        return [h.spec.gpu for h in self.on(node) if h.shared == slot and h.spec.gpu]

    def holders(self, node: Node, slot: int) -> int:
        """Return what keeps others off the GPU: who holds it whole, and that it is unhealthy."""
        unhealthy = bool(gpus_of(node)[slot].problem)
        return unhealthy + sum(slot in h.whole for h in self.on(node))

    def compute_left(self, node: Node, slot: int) -> int:
        healthy = sum(not gpu.problem for gpu in node.gpus) or 1
        most = max(100, round(node.allocatable.get(names.VGPU_COMPUTE, 0) / healthy))
        return most - sum(t.compute for t in self.tenants(node, slot))

    def memory_left(self, node: Node, slot: int) -> int:
        return gpus_of(node)[slot].memory_mib - sum(t.memory_mib for t in self.tenants(node, slot))

    def _takes(self, demand: GpuDemand, node: Node, slot: int, gpu: Gpu) -> bool:
        if self.holders(node, slot) or not gpu.memory_mib:
            return False
        hard = sum(t.compute for t in self.tenants(node, slot) if not t.soft)
        return (
            self.memory_left(node, slot) >= demand.memory_mib
            and self.compute_left(node, slot) >= demand.compute
            and not (not demand.soft and demand.compute and hard + demand.compute > 100)
        )

    # --- scores -----------------------------------------------------------------------------------

    def scores(
        self, spec: PodSpec, feasible: Sequence[Node]
    ) -> Mapping[str, tuple[Fraction, Fraction]]:
        """Return the score of each node, and what decides where that is the same."""
        soft = {n.name: self._untolerated(spec, n) for n in feasible}
        liked = {n.name: self._liked(spec, n) for n in feasible}
        most_soft, most_liked = max(soft.values()), max(liked.values())
        total = {}
        for node in feasible:
            taints = 100 - (soft[node.name] * 100 // most_soft if most_soft else 0)
            likes = liked[node.name] * 100 // most_liked if most_liked else 0
            parts = {
                "taints": 3 * taints,
                "likes": 2 * likes,
                "fit": self._allocation(spec, node),
                "gpus": self._gpu_allocation(spec, node),
            }
            if spec.gpu:
                parts["links"] = 2 * self._connected(spec.gpu, node)
                parts["models"] = 4 * self._models_liked(spec.gpu, node)
            if self.even:
                parts["even"] = self._evenness(spec, node)
            if self.images and not (self.gpu_nodes_in_order and gpus_of(node)):
                parts["images"] = self._images(spec, node)
            behind = self.break_ties if self._goes_by_gpus(spec) else frozenset()
            total[node.name] = (
                sum((Fraction(v) for k, v in parts.items() if k not in behind), Fraction()),
                sum((Fraction(v) for k, v in parts.items() if k in behind), Fraction()),
            )
        return total

    def _goes_by_gpus(self, spec: PodSpec) -> bool:
        there = any(gpus_of(node) for node in self.nodes.values())
        return there and bool(self.packs or spec.gpu)

    def _gpu_allocation(self, spec: PodSpec, node: Node) -> Fraction:
        if not self._goes_by_gpus(spec):
            return Fraction()
        gpus = gpus_of(node)
        unused = [i for i in range(len(gpus)) if not self.tenants(node, i)]
        free = len([i for i in unused if not self.holders(node, i)])
        idle = free == len(gpus)
        if spec.gpu is None:
            return Fraction(15 - min(free, 15) + 16 * (not (idle and free)), 1024)
        if not self.packs:
            return self._spread(spec.gpu, node)
        not_opened, tenths = 0, 0
        if spec.gpu.memory_mib:
            fits = [
                self.level(node, i)
                for i, gpu in enumerate(gpus)
                if accepts(spec.gpu, gpu) and self._takes(spec.gpu, node, i, gpu)
            ]
            least = min(fits, default=1000)
            not_opened, tenths = int(least < 1000), 10 - -(-least // 100)
        if idle and not self.smallest_first:
            free = 0
        found = not_opened
        for radix, digit in (
            (2, int(not idle)),
            (11, tenths),
            (32, 31 - min(free, 31)),
            (32, min(len(self.on(node)), 31)),
        ):
            found = found * radix + digit
        return Fraction(found, 1024)

    def _spread(self, demand: GpuDemand, node: Node) -> Fraction:
        gpus = gpus_of(node)
        levels = [self.level(node, i) for i in range(len(gpus))]
        asked = Fraction(demand.whole)
        if demand.memory_mib:
            memory = max((gpu.memory_mib for gpu in gpus), default=0)
            part = Fraction(demand.memory_mib, max(memory, 1))
            asked += min(max(part, Fraction(demand.compute, 100)), 1)
        if not gpus:
            return Fraction()
        used = sum(Fraction(1000 - level, 1000) for level in levels) + asked
        left = max(1 - used / len(gpus), Fraction())
        score = math.floor(left * 8000 + Fraction(1, 10**6)) * 8
        if demand.memory_mib:
            fits = [
                Fraction(levels[i], 1000)
                for i, gpu in enumerate(gpus)
                if accepts(demand, gpu) and self._takes(demand, node, i, gpu)
            ]
            score += math.floor(max(fits, default=Fraction()) * 7)
        return Fraction(score, 1024)

    def level(self, node: Node, slot: int) -> int:
        """How many thousandths of a GPU are free, of its memory or its compute."""
        if self.holders(node, slot):
            return 0
        memory = gpus_of(node)[slot].memory_mib
        part = self.memory_left(node, slot) / memory if memory else 1.0
        return max(int(min(part, self.compute_left(node, slot) / 100, 1.0) * 1000 + 1e-6), 0)

    def _connected(self, demand: GpuDemand, node: Node) -> int:
        sets = itertools.combinations(self.free(demand, node), demand.whole)
        if demand.whole < 2:
            return 0
        best = max((link_score(connection(gpus_of(node), s)[0]) for s in sets), default=0)
        return 0 if self.nvlink_only and best < 60 else best

    def _models_liked(self, demand: GpuDemand, node: Node) -> int:
        weights = dict(demand.weights)
        slots = self.free(demand, node)
        if not demand.whole:
            gpus = gpus_of(node)
            slots = [
                i
                for i, gpu in enumerate(gpus)
                if accepts(demand, gpu) and self._takes(demand, node, i, gpu)
            ]
        weighted = sorted((weights.get(gpus_of(node)[i].model, 0) for i in slots), reverse=True)
        wanted = max(demand.whole, 1)
        return weighted[wanted - 1] if len(weighted) >= wanted else 0

    def _untolerated(self, spec: PodSpec, node: Node) -> int:
        mine = [t for t in spec.tolerations if t.effect in ("", "PreferNoSchedule")]
        soft = [t for t in node.taints if t.effect == "PreferNoSchedule"]
        return sum(not tolerates(mine, t) for t in soft)

    def _liked(self, spec: PodSpec, node: Node) -> int:
        preferred = spec.affinity.preferred if spec.affinity else ()
        return sum(p.weight for p in preferred if matches(p.term, node))

    def _allocation(self, spec: PodSpec, node: Node) -> int:
        if self.gpu_nodes_in_order and gpus_of(node):
            return 0
        parts = []
        for name, field in (("cpu", "scored_cpu"), ("memory", "scored_memory")):
            there = node.allocatable.get(name, 0)
            if there:
                used = getattr(spec, field) + sum(getattr(h.spec, field) for h in self.on(node))
                used = min(used, there)
                good = there - used if self.strategy == "LeastAllocated" else used
                parts.append(good * 100 // there)
        return self.gpu_nodes_in_order + (sum(parts) // len(parts) if parts else 0)

    def _evenness(self, spec: PodSpec, node: Node) -> int:
        """How the pod changes the evenness of use, kube-scheduler's way: 50 to 100."""
        asked = dict(spec.requests)
        if not asked.get("cpu") and not asked.get("memory"):
            return 0
        there = {r: node.allocatable[r] for r in ("cpu", "memory") if node.allocatable.get(r)}
        held = {r: sum(dict(h.spec.requests).get(r, 0) for h in self.on(node)) for r in there}

        def even(used: Mapping[str, int]) -> int:
            parts = [min(used[r] / there[r], 1.0) for r in there]
            return int((1 - (abs(parts[0] - parts[1]) / 2 if len(parts) == 2 else 0.0)) * 100)

        after = even({r: held[r] + asked.get(r, 0) for r in there})
        return 50 + (50 + after - even(held)) // 2

    def _images(self, spec: PodSpec, node: Node) -> int:
        """The bytes of the pod's images on the node, each times the part of nodes that has it."""
        total = 0
        for name in spec.images:
            having = [n for n in self.nodes.values() if any(name in i.names for i in n.images)]
            for image in node.images:
                if name in image.names:
                    total += int(image.size * (len(having) / len(self.nodes)))
        least, most = 23 * 2**20, 1000 * 2**20 * spec.image_containers
        return 100 * (min(max(total, least), most) - least) // (most - least) if most else 0


def in_the_way(wanted: HostPort, held: HostPort) -> bool:
    """Two ports of a host that cannot both be had."""
    return (wanted.port, wanted.protocol) == (held.port, held.protocol) and (
        "0.0.0.0" in (wanted.address, held.address) or wanted.address == held.address
    )


def gpus_of(node: Node) -> tuple[Gpu, ...]:
    """The GPUs that can be used: those described, or as many nameless ones as are counted."""
    if node.problem:
        return ()
    if node.gpus:
        return node.gpus
    model = node.labels.get(names.GPU_MODEL_LABEL, "")
    return tuple(Gpu("", i, model, 0) for i in range(node.allocatable.get(names.GPU, 0)))


def accepts(demand: GpuDemand, gpu: Gpu) -> bool:
    if gpu.model in demand.models_not:
        return False
    return not demand.models or gpu.model in demand.models


def connection(gpus: Sequence[Gpu], slots: Sequence[int]) -> tuple[int, int]:
    """The weakest link among GPUs and the sum of all, SYS = 10, an NVLink = 100."""
    found = [_link(gpus[a], gpus[b]) for a, b in itertools.combinations(slots, 2)]
    return min(found, default=0), sum(found)


def _link(a: Gpu, b: Gpu) -> int:
    kind = dict(a.links).get(b.index, "")
    if not kind and a.numa is not None and b.numa is not None:
        return 20 if a.numa == b.numa else 10
    if kind.startswith("NV"):
        return 100 * int(kind[2:])
    return {"": 0, "SYS": 10}[kind]


def link_score(weakest: int) -> int:
    return weakest if weakest < 100 else 60 + 40 * (weakest // 100) // 18


def tolerates(tolerations: Sequence[Toleration], taint: Taint) -> bool:
    for t in tolerations:
        if t.effect not in ("", taint.effect) or t.key not in ("", taint.key):
            continue
        if t.operator == "Exists" or (t.key and t.value == taint.value):
            return True
    return False


def matches(term: Term, node: Node) -> bool:
    if not term.labels and not term.fields:
        return False
    fields = {"metadata.name": node.name}
    return all(_holds(r, node.labels) for r in term.labels) and all(
        _holds(r, fields) for r in term.fields
    )


def _holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    if value is None or not value.lstrip("-").isdigit():
        return False
    limit = int(requirement.values[0])
    return int(value) > limit if requirement.operator == "Gt" else int(value) < limit
