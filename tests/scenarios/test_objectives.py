"""Where each profile sends each class of pods, and what goes first where purposes conflict.

The table and the precedence are those of docs/concepts/objectives.md.
"""

import msgspec
import pytest

from alnair.model import names
from alnair.model.nodes import GpuLoad, Node
from alnair.model.workload import LabelSelector, Pod, PodSpec, Requirement, SpreadConstraint
from kit import make
from kit.world import World

USED_FIRST = 1
BALANCED, PACK = names.SCHEDULER, names.COST_SAVING
SPREAD, LOAD = names.HIGH_PERFORMANCE, names.UTILSCHED
DENSE = names.LOW_FRAGMENTATION
CLASSES = {
    "several GPUs": make.spec(whole=2),
    "one GPU": make.spec(whole=1),
    "part of a GPU": make.spec(slice_mib=8192),
    "GPU and many cores": make.spec(whole=1, cpu=12000),
}


def measured(node: Node, *percent: float) -> Node:
    loads = tuple(
        GpuLoad(gpu.uuid, util, 0, 1000.0) for gpu, util in zip(node.gpus, percent, strict=True)
    )
    return msgspec.structs.replace(node, loads=loads, agent_lease=f"alnair-agent-{node.name}")


def tenant(name: str, spec: PodSpec) -> Pod:
    selector = (("kubernetes.io/hostname", "used"),)
    return make.pod(name, msgspec.structs.replace(spec, node_selector=selector))


def cluster(*, loads: bool = False) -> World:
    """Two nodes of four GPUs: `empty`, and `used`, with GPU 0 taken and GPU 1 shared.

    The balanced profile fills nodes in the order of a seed, which has `used` before `empty` here.
    """
    world = World(seed=USED_FIRST)
    for name, percent in (("used", (90.0, 20.0, 5.0, 10.0)), ("empty", (60.0,) * 4)):
        node = make.node(name, cpu=64000, gpus=4)
        world.put(measured(node, *percent) if loads else node)
    world.create(tenant("whole", make.spec(whole=1, cpu=8000)))
    world.settle()
    world.create(tenant("slice", make.spec(slice_mib=4096)))
    world.settle()
    assert world.where("whole", "slice") == ["used", "used"]
    return world


def gpus(world: World, name: str) -> list[int]:
    return [share.index for _, shares in world.pod(name).assignment for share in shares]


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize(
    ("profile", "node"),
    [(BALANCED, "used"), (PACK, "used"), (DENSE, "used"), (SPREAD, "empty"), (LOAD, "used")],
)
def test_each_profile_sends_each_class_to_its_node(profile: str, node: str, kind: str) -> None:
    world = cluster(loads=profile == LOAD)
    world.create(make.pod("new", CLASSES[kind], scheduler=profile))
    world.settle(0.0)
    assert world.where("new") == [node]
    if kind == "part of a GPU":
        taken = {BALANCED: [1], PACK: [1], DENSE: [1], LOAD: [2]}
        assert gpus(world, "new") == taken.get(profile, gpus(world, "new"))


@pytest.mark.parametrize("seed", range(3))
def test_by_load_the_idle_node_is_taken_whichever_is_fuller(seed: int) -> None:
    world = World(seed=seed)
    world.put(measured(make.node("busy", cpu=64000, gpus=2), 60.0, 60.0))
    world.put(measured(make.node("idle", cpu=64000, gpus=2), 3.0, 3.0))
    world.create(make.pod("new", make.spec(whole=1), scheduler=LOAD))
    world.settle(0.0)
    assert world.where("new") == ["idle"]


@pytest.mark.parametrize(
    ("profile", "node"), [(BALANCED, "plain"), (PACK, "used"), (SPREAD, "empty")]
)
def test_pods_without_gpus_are_kept_off_gpu_nodes_or_packed_or_spread(
    profile: str, node: str
) -> None:
    world = cluster()
    if profile == BALANCED:
        world.put(make.node("plain", cpu=8000))
    world.create(make.pod("new", make.spec(cpu=1000), scheduler=profile))
    world.settle()
    assert world.where("new") == [node]


@pytest.mark.parametrize(
    ("profile", "fits"), [(BALANCED, True), (PACK, True), (DENSE, True), (SPREAD, False)]
)
def test_spreading_slices_leaves_no_node_whole_and_packing_does(profile: str, fits: bool) -> None:
    world = World(*(make.node(f"n{i}", cpu=64000, gpus=4) for i in range(2)))
    for number in range(2):
        world.create(
            make.pod(f"s{number}", make.spec(slice_mib=4096, cpu=16000), scheduler=profile)
        )
        world.settle()
    world.create(make.pod("large", make.spec(whole=4), scheduler=profile))
    world.settle()
    assert ("large" in world.placed()) == fits


@pytest.mark.parametrize("hard", [True, False])
def test_a_spread_constraint_of_the_pod_goes_before_the_packing_of_its_profile(hard: bool) -> None:
    selector = LabelSelector((Requirement("app", "In", ("x",)),))
    apart = SpreadConstraint(1, "kubernetes.io/hostname", hard, selector)
    world = World(*(make.node(name, cpu=64000, gpus=4) for name in ("a", "b")))
    for number in range(2):
        spec = make.spec(whole=1, spread=[apart])
        world.create(make.pod(f"p{number}", spec, scheduler=PACK, labels={"app": "x"}))
        world.settle()
    assert sorted(world.where("p0", "p1")) == ["a", "b"]


@pytest.mark.parametrize("profile", [BALANCED, PACK, SPREAD])
def test_the_gpu_model_that_a_pod_likes_goes_before_its_profile(profile: str) -> None:
    liked = "empty" if profile != SPREAD else "used"
    world = World()
    for name in ("used", "empty"):
        model = "A100" if name == liked else "T4"
        world.put(make.node(name, cpu=64000, gpus=4, model=model))
    world.create(tenant("whole", make.spec(whole=1, cpu=8000)))
    world.settle()
    world.create(make.pod("new", make.spec(whole=1, weights="A100=100"), scheduler=profile))
    world.settle()
    assert world.where("new") == [liked]
