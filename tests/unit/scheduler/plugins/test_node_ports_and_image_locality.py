"""Ports of the hosts, and images that are on nodes already."""

import pytest

from alnair.model.nodes import Image, Node
from alnair.model.workload import HostPort, PodSpec
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.evaluation_cache import Evaluations
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.plugins.image_locality import ImageLocality
from alnair.scheduler.plugins.priority_sort import PrioritySort
from alnair.scheduler.profiles import profiles
from alnair.scheduler.state.accounts import Accounts
from alnair.scheduler.state.nodes.columns import TIES
from kit import make
from kit.world import World

MIB = 2**20
BIG = Image(("big:1", "big@sha256:0"), 1000 * MIB)


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (HostPort(80), HostPort(80), False),
        (HostPort(80), HostPort(81), True),
        (HostPort(80), HostPort(80, "UDP"), True),
        (HostPort(80, address="10.0.0.1"), HostPort(80, address="10.0.0.2"), True),
        (HostPort(80, address="10.0.0.1"), HostPort(80, address="10.0.0.1"), False),
        (HostPort(80, address="10.0.0.1"), HostPort(80), False),
        (HostPort(80), HostPort(80, address="10.0.0.1"), False),
    ],
)
def test_a_port_of_a_host_is_had_once(first: HostPort, second: HostPort, together: bool) -> None:
    world = World(make.node("n"))
    world.create(make.pod("a", make.spec(ports=[first])), make.pod("b", make.spec(ports=[second])))
    world.settle()
    assert world.placed() == ({"a", "b"} if together else {"a"})


def test_a_port_is_free_again_when_its_pod_is_gone() -> None:
    world = World(make.node("n"))
    ports = make.spec(ports=[HostPort(80)])
    world.create(make.pod("a", ports), make.pod("b", ports))
    world.settle()
    assert world.placed() == {"a"}
    refusal = (
        "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    )
    assert refusal in [report.message for report in world.reports]
    world.delete("a")
    world.settle()
    assert world.placed() == {"b"}


def test_pods_of_one_gang_do_not_share_a_port_of_a_host() -> None:
    world = World(make.node("n0"), make.node("n1"))
    world.declare(make.gang(min_member=2))
    world.create(*make.members("gang", 2, make.spec(ports=[HostPort(80)])))
    world.settle()
    assert sorted(world.where("gang-0", "gang-1")) == ["n0", "n1"]


def test_every_profile_looks_at_ports() -> None:
    assert all("NodePorts" in {p.name for p in profile.filters} for profile in profiles())


def best(accounts: Accounts, evaluations: Evaluations, spec: PodSpec, profile: Profile) -> str:
    row = evaluations.of(spec, profile).best()
    assert row is not None
    node = accounts.columns.nodes[row]
    assert node is not None
    return node.name


def test_scores_follow_images_that_come_and_go() -> None:
    """One image at a time is on one of two nodes; the evaluation that is kept must notice."""
    accounts = Accounts()
    evaluations = Evaluations(accounts.cluster)
    profile = Profile("images", [PrioritySort(), ImageLocality()])
    spec = make.spec(images=["big:1"])

    def put(with_image: str) -> None:
        for name in ("a", "b"):
            accounts.put_node(make.node(name, images=[BIG] if name == with_image else []))

    for name in ("a", "b", "a", "b"):
        put(name)
        assert best(accounts, evaluations, spec, profile) == name
    accounts.put_node(make.node("c"))
    accounts.remove_node("b")
    put("a")
    assert best(accounts, evaluations, spec, profile) == "a"


def test_an_image_counts_less_the_more_nodes_there_are() -> None:
    accounts = Accounts()
    evaluations = Evaluations(accounts.cluster)
    profile = Profile("images", [PrioritySort(), ImageLocality()])
    spec = make.spec(images=["big:1"])

    def scores() -> dict[str, int]:
        rank = evaluations.of(spec, profile).rank
        return {name: int(rank[row] // TIES) for name, row in accounts.columns.row_of.items()}

    accounts.put_node(make.node("a", images=[BIG]))
    assert scores() == {"a": 100}
    accounts.put_node(make.node("b"))
    assert scores() == {"a": 100 * (500 - 23) // (1000 - 23), "b": 0}
    accounts.put_node(make.node("c", images=[BIG]))
    two_thirds = 100 * (667 - 23) // (1000 - 23)
    assert scores() == {"a": two_thirds, "b": 0, "c": two_thirds}
    accounts.remove_node("b")
    assert scores() == {"a": 100, "c": 100}
    accounts.remove_node("c")
    assert scores() == {"a": 100}


def test_a_pulled_image_wakes_nobody_and_changes_no_row() -> None:
    engine = Engine(profiles())
    plain, pulled = make.node("n"), make.node("n", images=[BIG])
    engine.learn([events.NodeChanged(plain)], 0.0)
    assert engine._accounts.put_node(pulled) is False
    changes = engine.view.cluster.columns.nodes_changed.end
    assert engine._accounts.put_node(plain) is False
    assert engine.view.cluster.columns.nodes_changed.end == changes
    assert engine._accounts.put_node(make.node("n", images=[BIG], cpu=1)) is True


def test_an_image_that_another_node_has_leads_there_but_not_to_nodes_with_gpus() -> None:
    def place(profile: str, *nodes: Node) -> str:
        world = World(*nodes)
        world.create(make.pod("p", make.spec(images=["big:1"]), scheduler=profile))
        world.settle()
        return world.where("p")[0]

    for name in ("x", "y", "z"):
        others = [make.node(other) for other in ("x", "y", "z") if other != name]
        node = make.node(name, images=[BIG])
        assert place("alnair-scheduler", node, *others) == name
        assert place("alnair-high-performance", node, *others) == name
    gpu_node = make.node("g", gpus=1, images=[BIG])
    assert place("alnair-scheduler", gpu_node, make.node("x")) == "x"


def test_images_do_not_change_the_order_in_which_gpu_nodes_are_filled() -> None:
    def order(*with_image: str) -> list[str]:
        nodes = [
            make.node(f"g{i}", gpus=1, images=[BIG] if f"g{i}" in with_image else [])
            for i in range(4)
        ]
        world = World(*nodes)
        asked = make.spec(whole=1, images=["big:1"])
        world.create(*(make.pod(f"p{i}", asked, created=float(i)) for i in range(4)))
        world.settle()
        return world.where("p0", "p1", "p2", "p3")

    assert order() == order("g0") == order("g3", "g1")
