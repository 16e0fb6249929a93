"""Pods that name only GPUs on small clusters: sizes in, nodes and GPUs out, for each profile.

Nodes are a, b, c and so on, and are opened in this order; `2` is a pod of two GPUs, and `.5` one of
half of a GPU's memory.
"""

import random
from collections.abc import Callable, Sequence

import msgspec
import pytest

from alnair.model import names
from alnair.model.nodes import GpuLoad
from alnair.model.workload import NodeAffinity, PodSpec, Preference, Requirement, Term
from alnair.scheduler.plugins.opportunity_cost.workload_mix import FIRST
from kit import make
from kit.world import World

BALANCED, PACK, SPREAD = names.SCHEDULER, names.COST_SAVING, names.HIGH_PERFORMANCE
DENSE, LOAD = names.LOW_FRAGMENTATION, names.UTILSCHED
PACKING = (BALANCED, PACK, DENSE)
#: Size of a pod in GPUs → node and GPUs that it gets, such as `a01`.
Placed = list[tuple[float, str]]


def asks(size: float) -> PodSpec:
    """A pod that names its GPUs and nothing else."""
    if size >= 1:
        spec = make.spec(cpu=0, memory=0, whole=int(size))
    else:
        spec = make.spec(cpu=0, memory=0, slice_mib=round(size * make.GPU_MEMORY))
    return msgspec.structs.replace(spec, scored_cpu=100, scored_memory=200 << 20)


def cluster(gpus: Sequence[int]) -> World:
    world = World(order=[chr(ord("a") + i) for i in range(len(gpus))])
    for i, count in enumerate(gpus):
        world.put(make.node(chr(ord("a") + i), cpu=64000, gpus=count))
    return world


def cluster_of_models(models: Sequence[str], world: World) -> World:
    """Nodes of four GPUs, of these models."""
    for i, model in enumerate(models):
        name = chr(ord("a") + i)
        gpus = [msgspec.structs.replace(make.gpu(name, k), model=model) for k in range(4)]
        world.put(make.node(name, cpu=64000, gpus=gpus))
    return world


def place(world: World, profile: str, sizes: Sequence[float]) -> Placed:
    found = []
    for size in sizes:
        name = f"pod-{len(world.pods)}"
        world.create(make.pod(name, asks(size), scheduler=profile))
        world.settle()
        indices = [gpu.index for _, gpus in world.pod(name).assignment for gpu in gpus]
        found.append((size, f"{world.where(name)[0]}{''.join(map(str, indices))}"))
    return found


FOURS = (4, 4, 4, 4)


@pytest.mark.parametrize("profile", PACKING)
@pytest.mark.parametrize(
    ("gpus", "want"),
    [
        # What is left of a node is filled exactly, and a node stays free.
        (FOURS, [(2, "a01"), (3, "b012"), (1, "b3"), (2, "a23"), (3, "c012"), (1, "c3")]),
        (FOURS, [(3, "a012"), (3, "b012"), (2, "c01"), (1, "a3"), (2, "c23"), (1, "b3")]),
        ((8, 8), [(4, "a0123"), (1, "a4"), (8, "b01234567"), (3, "a567")]),
        # The fullest GPU with room, then the node with the fewest free GPUs.
        (FOURS, [(0.5, "a0"), (0.5, "a0"), (0.5, "a1"), (0.25, "a1"), (0.25, "a1")]),
        (FOURS, [(0.5, "a0"), (0.75, "a1"), (0.25, "a1"), (0.5, "a0"), (1, "a2")]),
        # Whole GPUs and slices: the hole beside the slice is used before a GPU is opened.
        (FOURS, [(0.5, "a0"), (3, "a123"), (4, "b0123"), (0.5, "a0"), (0.5, "c0"), (2, "c12")]),
    ],
)
def test_packing_profiles_fill_what_is_open(
    profile: str, gpus: Sequence[int], want: Placed
) -> None:
    assert place(cluster(gpus), profile, [size for size, _ in want]) == want


@pytest.mark.parametrize("profile", [BALANCED, DENSE])
@pytest.mark.parametrize(
    "want",
    [
        [(2, "b01"), (3, "c012"), (1, "c3"), (2, "b23")],
        [(3, "b012"), (3, "c012"), (2, "d01"), (1, "b3"), (2, "d23"), (1, "c3")],
        [(0.5, "b0"), (3, "b123"), (4, "c0123"), (0.5, "b0")],
    ],
)
def test_the_first_pods_leave_the_node_with_rare_gpus_and_fill_the_others_alike(
    profile: str, want: Placed
) -> None:
    """The first node of the order is the only one with a T4."""
    world = cluster_of_models(("T4", "A100", "A100", "A100"), World(order=list("abcd")))
    assert place(world, profile, [size for size, _ in want]) == want


def test_cost_saving_opens_the_smallest_idle_node_and_others_the_next_one() -> None:
    assert place(cluster((8, 4, 2)), PACK, [1, 2, 1]) == [(1, "c0"), (2, "b01"), (1, "c1")]
    assert place(cluster((8, 4, 2)), BALANCED, [1, 2, 1]) == [(1, "a0"), (2, "a12"), (1, "a3")]


@pytest.mark.parametrize(
    ("gpus", "want"),
    [
        (FOURS, [(1, "a0"), (1, "b0"), (1, "c0"), (1, "d0"), (1, "a1"), (1, "b1")]),
        (FOURS, [(0.5, "a0"), (0.5, "b0"), (0.5, "c0"), (0.5, "d0"), (0.5, "a1"), (0.5, "b1")]),
        (FOURS, [(2, "a01"), (1, "b0"), (0.5, "c0"), (0.25, "d0"), (0.25, "d1"), (1, "c1")]),
        # By the part of the node that is left, and not by the number of pods.
        ((8, 4), [(1, "a0"), (1, "b0"), (1, "a1"), (1, "a2"), (1, "a3")]),
    ],
)
@pytest.mark.parametrize("profile", [SPREAD, LOAD])
def test_spreading_profiles_go_to_the_emptiest_node_and_gpu(
    profile: str, gpus: Sequence[int], want: Placed
) -> None:
    assert place(cluster(gpus), profile, [size for size, _ in want]) == want


def test_high_performance_keeps_off_switches_in_use() -> None:
    """GPUs 0 and 1, 2 and 3, ... are linked by NVLink: each pod gets a pair of its own."""
    world = World()
    world.put(make.node("a", cpu=64000, gpus=make.linked("a", 8, 2)))
    assert place(world, SPREAD, [1, 1, 1, 1]) == [(1, "a0"), (1, "a2"), (1, "a4"), (1, "a6")]
    assert place(world, SPREAD, [0.5]) == [(0.5, "a1")]


@pytest.mark.parametrize(
    ("profile", "want"), [(BALANCED, "a13"), (PACK, "a13"), (SPREAD, "b01")], ids=str
)
def test_packing_profiles_open_no_node_for_one_way_over_pcie_or_another(
    profile: str, want: str
) -> None:
    """GPUs 1 and 3 of the node in use are on two NUMA nodes, 0 and 1 of the idle one on one."""
    world = World(order=["a", "b"])
    for name in "ab":
        gpus = [make.gpu(name, i, numa=i // 2) for i in range(4)]
        world.put(make.node(name, cpu=64000, gpus=gpus))
    used = make.pod("used", make.spec(whole=2))
    shares = tuple(make.share(gpu) for gpu in world.nodes["a"].gpus[::2])
    world.create(msgspec.structs.replace(used, node="a", assignment=(("main", shares),)))
    world.settle()
    assert place(world, profile, [2]) == [(2, want)]


@pytest.mark.parametrize(
    ("size", "want"), [(1, "b"), (2, "b"), (0.5, "b")], ids=["one", "two", "slice"]
)
def test_high_performance_goes_where_gpus_are_measured_idle(size: float, want: str) -> None:
    world = World(order=["a", "b"])
    for name, percent in (("a", 80.0), ("b", 10.0)):
        node = make.node(name, cpu=64000, gpus=4)
        loads = tuple(GpuLoad(gpu.uuid, percent, 0, world.now) for gpu in node.gpus)
        lease = f"alnair-agent-{name}"
        world.put(msgspec.structs.replace(node, loads=loads, agent_lease=lease))
    assert place(world, SPREAD, [size])[0][1].startswith(want)


def test_what_a_pod_prefers_goes_before_free_gpus() -> None:
    world = World(order=["a", "b"])
    world.put(make.node("a", cpu=64000, gpus=4))
    world.put(make.node("b", cpu=64000, gpus=4, labels={"pool": "old"}))
    term = Term((Requirement("pool", "In", ("old",)),))
    spec = msgspec.structs.replace(asks(1), affinity=NodeAffinity(preferred=(Preference(1, term),)))
    for profile in (PACK, BALANCED, SPREAD):
        world.create(make.pod(profile, spec, scheduler=profile))
        world.settle()
    assert world.where(PACK, BALANCED, SPREAD) == ["b", "b", "b"]


def test_pods_without_gpus_use_cores_of_nodes_whose_gpus_are_taken() -> None:
    for profile in PACKING:
        world = cluster((4, 4, 4))
        place(world, profile, [2, 4])
        world.create(
            *(make.pod(f"cpu-{i}", make.spec(cpu=16000), scheduler=profile) for i in "123")
        )
        world.settle()
        assert world.where("cpu-1", "cpu-2", "cpu-3") == ["b", "b", "b"], profile


# --- never worse than best fit --------------------------------------------------------------------

Free = tuple[int, int]


def best_fit(nodes: int, gpus: int, sizes: Sequence[float]) -> Free:
    """Best fit by GPU in a few lines: what is left of a GPU, then of a node, is the least."""
    left = [[1.0] * gpus for _ in range(nodes)]

    def whole(node: int) -> int:
        return sum(part == 1.0 for part in left[node])

    for size in sizes:
        if size >= 1:
            fits = [n for n in range(nodes) if whole(n) >= size]
            node = min(fits, key=whole)
            for gpu in [g for g in range(gpus) if left[node][g] == 1.0][: int(size)]:
                left[node][gpu] = 0.0
        else:
            room = [(left[n][g], whole(n), n, g) for n in range(nodes) for g in range(gpus)]
            _, _, node, gpu = min(r for r in room if r[0] >= size - 1e-9)
            left[node][gpu] -= size
    return (
        sum(whole(n) == gpus for n in range(nodes)),
        sum(whole(n) for n in range(nodes)),
    )


MIXES: dict[str, Callable[[random.Random], float]] = {
    "whole": lambda draw: draw.choice([1, 1, 1, 2, 2, 3, 4]),
    "slices": lambda draw: draw.choice([0.1, 0.2, 0.25, 0.4, 0.5, 0.7]),
    "both": lambda draw: draw.choice([0.2, 0.25, 0.5, 0.7, 1, 1, 2, 4]),
}


@pytest.mark.parametrize("profile", PACKING)
@pytest.mark.parametrize("models", ["AAAAAA", "TAAAAA", "AAATTT"])
@pytest.mark.parametrize("mix", MIXES)
def test_a_cluster_that_just_started_keeps_as_much_free_as_best_fit_does(
    profile: str, models: str, mix: str
) -> None:
    """Over random short sequences, in which no profile has learned the mix of pods yet."""
    ours, theirs = [0, 0], [0, 0]
    for seed in range(20):
        draw = random.Random(f"{mix}/{seed}")
        sizes: list[float] = []
        while sum(sizes) < 12 and len(sizes) < FIRST - 1:
            sizes.append(MIXES[mix](draw))
        world = cluster_of_models(models, World(seed=seed))
        world.create(
            *(
                make.pod(f"p{i:02}", asks(size), scheduler=profile, created=float(i))
                for i, size in enumerate(sizes)
            )
        )
        world.settle()
        nodes, gpus = best_fit(6, 4, sizes)
        whole = world.engine.view.cluster.devices.whole_free[:6].tolist()
        ours[0] += sum(free == 4 for free in whole)
        ours[1] += int(sum(whole))
        theirs[0] += nodes
        theirs[1] += gpus
    assert ours[0] >= theirs[0], "whole nodes"
    assert ours[1] >= theirs[1], "whole GPUs"
