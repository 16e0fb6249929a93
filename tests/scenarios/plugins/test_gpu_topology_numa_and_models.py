"""Links between GPUs, NUMA zones and GPU models, through the whole engine."""

import itertools
import random

import msgspec
import pytest

from alnair.model import names
from alnair.model.gpu_demand import ContainerGpus
from alnair.model.nodes import Gpu, Node
from alnair.model.numa_topology import SINGLE_NUMA, NumaTopology, NumaZone
from alnair.model.pods_fingerprint import pods_fingerprint
from alnair.model.workload import ContainerPart, Pod, PodSpec
from kit import make
from kit.world import World

#: For names that no pod had before.
NUMBERS = itertools.count()


def put(world: World, *asked: PodSpec) -> list[Pod]:
    """Create pods one after the other; returns them as they are then."""
    made = []
    for one in asked:
        pod = make.pod(f"p{next(NUMBERS)}", one, created=world.now)
        world.create(pod)
        world.settle(0.0)
        made.append(world.pods[pod.uid])
    world.check_room()
    return made


def gpus(pod: Pod) -> dict[str, list[int]]:
    return {container: sorted(s.index for s in shares) for container, shares in pod.assignment}


def linked(name: str, count: int = 8, group: int = 2, **rest: str) -> Node:
    return make.node(name, gpus=make.linked(name, count, group), cpu=64_000, labels=rest)


def report(world: World, node: str, *cpus: int, **rest: object) -> None:
    """Report zones with so many millicores, now, and counting the pods that are there."""
    zones = tuple(
        NumaZone(i, (("cpu", cpu), ("memory", 64 * make.GIB))) for i, cpu in enumerate(cpus)
    )
    here = [(p.namespace, p.name) for p in world.pods.values() if p.node == node]
    fields = {
        "policy": SINGLE_NUMA,
        "reported": world.now // 1,
        "fingerprint": pods_fingerprint(here),
        **rest,
    }
    world.set_object("NodeResourceTopology", node, NumaTopology(zones, **fields))  # type: ignore[arg-type]


def guaranteed(**asked: int) -> PodSpec:
    return msgspec.structs.replace(make.spec(**asked), guaranteed=True)  # type: ignore[arg-type]


# --- links ---------------------------------------------------------------------------------------


def test_two_gpus_are_a_pair_and_a_single_one_tears_none() -> None:
    world = World(linked("n"))
    one, two, three, four = put(world, *(make.spec(whole=n) for n in (1, 2, 1, 4)))
    assert gpus(one) == {"main": [0]}
    assert gpus(two) == {"main": [2, 3]}
    assert gpus(three) == {"main": [1]}
    assert gpus(four) == {"main": [4, 5, 6, 7]}


def test_a_slice_opens_no_gpu_of_a_pair_while_another_will_do() -> None:
    world = World(linked("n", 4))
    one, two = put(world, make.spec(whole=1), make.spec(slice_mib=1024, compute=10))
    assert (gpus(one), gpus(two)) == ({"main": [0]}, {"main": [1]})


def test_a_pair_goes_to_a_node_that_has_one() -> None:
    """The node that is being filled has two GPUs left, and they do not belong together."""
    world = World(linked("torn", 4), linked("fresh", 4))
    used = make.pod("used", make.spec(whole=2))
    shares = [make.share(gpu) for gpu in world.nodes["torn"].gpus[::2]]
    held = msgspec.structs.replace(used, node="torn", assignment=(("main", tuple(shares)),))
    world.create(held)
    world.settle()
    (pair,) = put(world, make.spec(whole=2))
    assert (pair.node, gpus(pair)) == ("fresh", {"main": [0, 1]})
    (four,) = put(world, make.spec(whole=2))
    assert (four.node, gpus(four)) == ("fresh", {"main": [2, 3]})
    (last,) = put(world, make.spec(whole=2))
    assert (last.node, gpus(last)) == ("torn", {"main": [1, 3]}), "better than none"


def test_each_container_gets_a_connected_part() -> None:
    world = World(linked("n"))
    two = {names.GPU: 2}
    containers = [
        ContainerGpus("prepare", {names.GPU: 3}, init=True),
        ContainerGpus("a", {names.GPU: 1}),
        ContainerGpus("b", two),
        ContainerGpus("c", two),
    ]
    (pod,) = put(world, make.spec(containers=containers))
    parts = gpus(pod)
    assert parts["b"] in ([0, 1], [2, 3], [4, 5], [6, 7])
    assert parts["c"] in ([0, 1], [2, 3], [4, 5], [6, 7])
    assert len({*parts["a"], *parts["b"], *parts["c"]}) == 5
    assert set(parts["prepare"]) < {*parts["a"], *parts["b"], *parts["c"]}


def test_pods_with_at_most_one_gpu_go_to_the_same_nodes_with_and_without_links() -> None:
    """Decision 0007: how the balanced profile fills nodes is not for links to disturb."""

    def nodes(*, with_links: bool) -> list[str]:
        world = World(
            *(linked(f"n{i}") if with_links else make.node(f"n{i}", gpus=8) for i in range(6)),
            *(make.node(f"c{i}") for i in range(3)),
        )
        for node in list(world.nodes.values()):
            world.put(msgspec.structs.replace(node, allocatable={**node.allocatable, "cpu": 64000}))
        choose = random.Random(7).choice
        kinds = ({}, {"whole": 1}, {"slice_mib": 8192, "compute": 40})
        return [p.node for p in put(world, *(make.spec(**choose(kinds)) for _ in range(60)))]

    assert nodes(with_links=True) == nodes(with_links=False)


# --- NUMA zones ----------------------------------------------------------------------------------


@pytest.mark.parametrize("free_zone", [0, 1])
def test_gpus_lie_where_the_cores_are_free(free_zone: int) -> None:
    """All GPUs of the node are linked alike; the cores of one zone are taken."""
    world = World(linked("n", 8, 8))
    report(world, "n", *(32_000 if zone == free_zone else 1_000 for zone in (0, 1)))
    one, two = put(world, guaranteed(cpu=4000, whole=1), guaranteed(cpu=8000, whole=2))
    first = 4 * free_zone
    assert gpus(one) == {"main": [first]}
    assert gpus(two) == {"main": [first + 1, first + 2]}


def test_a_zone_that_must_hold_the_pod_goes_before_links() -> None:
    """Zone 0 has the NVLinks and no cores."""
    wired = make.linked("n", 4, 2)
    weak = [
        Gpu(g.uuid, g.index, g.model, g.memory_mib, g.numa, tuple((j, "SYS") for j, _ in g.links))
        for g in wired[2:]
    ]
    world = World(make.node("n", gpus=[*wired[:2], *weak], cpu=64_000))
    report(world, "n", 1_000, 32_000)
    (must,) = put(world, guaranteed(cpu=8000, whole=2))
    assert gpus(must) == {"main": [2, 3]}
    world.delete(must.name)
    report(world, "n", 1_000, 32_000, policy="best-effort")
    (may,) = put(world, guaranteed(cpu=8000, whole=2))
    assert gpus(may) == {"main": [0, 1]}, "links before zones where zones are only a wish"


@pytest.mark.parametrize("pod_scope", [False, True])
def test_containers_that_are_aligned_each_on_its_own_get_gpus_of_their_own_zones(
    pod_scope: bool,
) -> None:
    two = {names.GPU: 2}
    asked = make.spec(cpu=16_000, containers=[ContainerGpus("a", two), ContainerGpus("b", two)])
    part = ContainerPart((("cpu", 8000), ("memory", 50 * make.MIB), (names.GPU, 2)))
    asked = msgspec.structs.replace(asked, guaranteed=True, containers=(part, part))
    world = World(linked("n", 8, 8))
    report(world, "n", 10_000, 10_000, pod_scope=pod_scope)
    (pod,) = put(world, asked)
    if pod_scope:
        assert not pod.node
    else:
        assert gpus(pod) == {"a": [0, 1], "b": [4, 5]}


def test_pods_wait_for_the_report_that_gives_room_back() -> None:
    world = World(make.node("n", cpu=20_000))
    report(world, "n", 10_000, 10_000)
    world.now += 5
    placed = put(world, *[guaranteed(cpu=6000)] * 3)
    assert [p.node for p in placed] == ["n", "n", ""], "one in each zone"
    assert "cannot align container" in world.reports[-1].message
    world.now += 5
    world.delete(placed[0].name)
    world.settle()
    assert world.pod(placed[2].name).node == "n"


def test_what_lags_is_known_after_a_restart() -> None:
    world = World(make.node("n", cpu=20_000))
    report(world, "n", 10_000, 10_000)
    world.now += 5
    put(world, guaranteed(cpu=6000), guaranteed(cpu=6000))
    world.restart()
    (third,) = put(world, guaranteed(cpu=6000))
    assert third.node == ""
    world.now += 5
    report(world, "n", 4_000, 10_000)  # it turns out that one of them shares its cores
    world.settle()
    assert world.pod(third.name).node == "n"


# --- GPU models ----------------------------------------------------------------------------------


def test_refused_models_are_avoided_on_mixed_nodes_too() -> None:
    mixed = [make.gpu("n", 0, "T4"), make.gpu("n", 1, "A100"), make.gpu("n", 2, "T4")]
    world = World(make.node("n", gpus=mixed))
    one, two, three = put(world, *[make.spec(whole=1, models_not="T4")] * 2, make.spec(whole=2))
    assert gpus(one) == {"main": [1]}
    assert not two.node
    assert gpus(three) == {"main": [0, 2]}


@pytest.mark.parametrize("asked", [{"whole": 1}, {"slice_mib": 1024, "compute": 10}])
def test_liked_models_are_chosen_while_they_last(asked: dict[str, int]) -> None:
    world = World(
        make.node("t", gpus=1, model="T4"),
        make.node("a", gpus=1, model="A100"),
        make.node("h", gpus=[make.gpu("h", 0, "T4"), make.gpu("h", 1, "H100")]),
    )
    kind = {**asked, "compute": 100} if "compute" in asked else asked
    spec = make.spec(**kind, weights="H100=100,A100=60")  # type: ignore[arg-type]
    one, two, three = put(world, spec, spec, spec)
    assert (one.node, gpus(one)) == ("h", {"main": [1]})
    assert two.node == "a"
    assert three.node in ("t", "h")
