"""Inter-pod affinity as users meet it: pods that want, or do not want, other pods around them."""

import pytest

from alnair.model.workload import PodAffinity, PodSpec, PodTerm
from alnair.scheduler.engine import events
from kit import make
from kit.world import World

HOST = "kubernetes.io/hostname"


def near(key: str = "zone", **labels: str) -> PodSpec:
    return make.spec(pod_affinity=PodAffinity(required=(make.term(key, **labels),)))


def apart(key: str = HOST, cpu: int = 100, **labels: str) -> PodSpec:
    return make.spec(cpu=cpu, pod_affinity=PodAffinity(anti_required=(make.term(key, **labels),)))


def zones(*of: str, cpu: int = 8000) -> World:
    return World(*(make.node(f"n{i}", cpu=cpu, labels={"zone": z}) for i, z in enumerate(of)))


def test_replicas_that_want_to_be_alone_get_a_node_each_and_the_last_one_waits() -> None:
    world = zones("a", "a", "b")
    for number in range(4):
        world.create(make.pod(f"p{number}", apart(app="db"), labels={"app": "db"}))
    world.settle()
    assert sorted(filter(None, world.where("p0", "p1", "p2", "p3"))) == ["n0", "n1", "n2"]
    (waits,) = {"p0", "p1", "p2", "p3"} - world.placed()
    (report,) = [r for r in world.reports if r.pod.name == waits]
    assert "3 node(s) didn't match pod anti-affinity rules" in report.message
    world.delete(next(iter(world.placed())))
    world.settle()
    assert waits in world.placed()


def test_a_pod_keeps_away_from_pods_that_do_not_want_it() -> None:
    world = zones("a", "a", "b")
    world.foreign(make.pod("alone", apart("zone", app="batch"), labels={"app": "web"}), "n0")
    world.create(make.pod("job", labels={"app": "batch"}), make.pod("other", labels={"app": "web"}))
    world.settle()
    assert world.where("job") == ["n2"]
    assert world.where("other") != [""]
    world.remove("n2")
    world.create(make.pod("late", labels={"app": "batch"}))
    world.settle()
    (report,) = [r for r in world.reports if r.pod.name == "late"]
    assert "2 node(s) didn't satisfy existing pods anti-affinity rules" in report.message


def test_a_label_that_goes_away_lets_the_waiting_pod_in() -> None:
    world = zones("a")
    world.foreign(make.pod("there", labels={"app": "db"}), "n0")
    world.create(make.pod("mine", apart(app="db")))
    world.settle()
    assert not world.placed()
    world.update("there", labels=(("app", "cache"),))
    world.settle()
    assert world.placed() == {"mine"}


def test_a_node_that_gets_the_topology_label_lets_the_waiting_pod_in() -> None:
    world = World(make.node("n0"))
    world.create(make.pod("first", near(app="a"), labels={"app": "a"}))
    world.settle()
    assert not world.placed()
    world.put(make.node("n0", labels={"zone": "a"}))
    world.settle()
    assert world.placed() == {"first"}


def test_namespaces_are_chosen_by_their_labels_and_a_new_label_counts_at_once() -> None:
    world = zones("a")
    selector = make.selecting(team="red")
    term = PodTerm(HOST, make.selecting(app="db"), namespace_selector=selector)
    asked = make.spec(pod_affinity=PodAffinity(anti_required=(term,)))
    world.foreign(make.pod("there", namespace="ns", labels={"app": "db"}), "n0")
    world.inbox.append(events.ObjectChanged("Namespace", "", "ns", (("team", "red"),)))
    world.create(make.pod("mine", asked))
    world.settle()
    assert not world.placed()
    world.inbox.append(events.ObjectChanged("Namespace", "", "ns", ()))
    world.settle()
    assert world.placed() == {"mine"}


@pytest.mark.parametrize("seed", range(4))
def test_a_gang_whose_pods_want_each_other_lands_in_a_zone_that_holds_all(seed: int) -> None:
    layout = ("small", "roomy", "tiny", "roomy")
    nodes = (make.node(f"n{i}", cpu=1000, labels={"zone": z}) for i, z in enumerate(layout))
    world = World(*nodes, seed=seed)
    world.declare(make.gang("g", 4))
    asked = make.spec(cpu=500, pod_affinity=PodAffinity(required=(make.term(app="g"),)))
    world.create(*make.members("g", 4, asked, labels={"app": "g"}))
    world.settle()
    assert set(world.where(*(f"g-{i}" for i in range(4)))) == {"n1", "n3"}


def test_a_gang_that_cannot_keep_apart_leaves_no_trace() -> None:
    world = zones("a", "b")
    world.declare(make.gang("g", 3))
    world.create(*make.members("g", 3, apart(app="g"), labels={"app": "g"}))
    world.settle(5.0)
    assert not world.placed()
    world.create(make.pod("free", labels={"app": "g"}))
    world.settle(1.0)
    assert world.placed() == {"free"}, "what was tried and undone keeps nobody away"
    world.delete("free")
    world.put(make.node("n2"))
    world.settle()
    assert len(set(world.where("g-0", "g-1", "g-2"))) == 3


def test_preferred_terms_draw_and_push_without_forbidding() -> None:
    world = zones("a", "b", "b")
    world.foreign(make.pod("cache", labels={"app": "cache"}), "n1")
    near = PodAffinity(
        preferred=(make.term("zone", 100, app="cache"),),
        anti_preferred=(make.term(HOST, 50, app="cache"),),
    )
    world.create(make.pod("web", make.spec(pod_affinity=near)))
    world.settle()
    assert world.where("web") == ["n2"]


def test_a_pod_that_waits_to_be_near_another_follows_when_that_one_comes() -> None:
    world = zones("a", "b", "b")
    world.create(make.pod("ours", near(app="db")), make.pod("ours-too", near(app="web")))
    world.settle()
    assert not world.placed()
    world.create(make.pod("web", make.spec(node_name="n0"), labels={"app": "web"}))
    world.settle()
    assert world.where("ours-too", "web") == ["n0", "n0"], "placed by us"
    world.foreign(make.pod("db", labels={"app": "db"}), "n1")
    world.settle()
    assert world.where("ours")[0] in ("n1", "n2"), "placed by another scheduler"


def test_a_gang_follows_the_pod_that_its_members_want_near() -> None:
    world = zones("a", "b")
    world.declare(make.gang("g", 2))
    world.create(*make.members("g", 2, near(app="db")))
    world.settle()
    assert not world.placed()
    world.foreign(make.pod("db", labels={"app": "db"}), "n1")
    world.settle()
    assert set(world.where("g-0", "g-1")) == {"n1"}


def test_room_that_is_held_for_a_pod_is_no_pod_to_be_near() -> None:
    """As in kube-scheduler, which filters with nominated pods and without them."""
    world = World(make.node("n", cpu=4000, labels={"zone": "a"}))
    world.graceful = True
    world.create(make.pod("victim", make.spec(cpu=3500), node="n"))
    wanted = make.pod("wanted", make.spec(cpu=3000), priority=5, labels={"app": "a"})
    world.create(wanted)
    world.settle(seconds=5)
    near = make.spec(cpu=100, pod_affinity=PodAffinity(required=(make.term(app="a"),)))
    world.create(make.pod("p", near))
    world.settle(seconds=5)
    assert world.pod("wanted").nominated == "n"
    assert world.where("p") == [""]
    world.delete("victim")
    world.settle()
    assert world.where("wanted", "p") == ["n", "n"]
