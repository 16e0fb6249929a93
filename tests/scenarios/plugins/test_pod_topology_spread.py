"""Pods spread over zones, and those that cannot wait for just what helps them."""

from collections import Counter

import msgspec

from alnair.model import names
from alnair.model.workload import LabelSelector, Pod, PodSpec
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.plugins.pod_topology_spread.plugin import PodTopologySpread
from alnair.scheduler.profiles import profiles
from kit import make
from kit.world import World

APP = make.selecting(app="web")
HOSTNAME = "kubernetes.io/hostname"


def over_zones(max_skew: int = 1, *, hard: bool = True, cpu: int = 100, **rest: int) -> PodSpec:
    return make.spec(cpu=cpu, spread=[make.spread_over("zone", APP, max_skew, hard=hard, **rest)])


def web(name: str, asked: PodSpec | None = None, **rest: str) -> Pod:
    return make.pod(name, asked or over_zones(), labels={"app": "web"}, **rest)


def zones(*sizes: int, cpu: int = 8000) -> World:
    """A world with zones z0, z1, … of so many nodes; node `z0-1` is in zone z0."""
    return World(
        *(
            make.node(f"z{zone}-{number}", labels={"zone": f"z{zone}"}, cpu=cpu)
            for zone, size in enumerate(sizes)
            for number in range(size)
        )
    )


def per_zone(world: World) -> dict[str, int]:
    return dict(Counter(p.node[:2] for p in world.pods.values() if p.node))


def refusal(world: World) -> str:
    """What was said of the last pod that fits nowhere."""
    return [r.message for r in world.reports if r.kind == "FailedScheduling"][-1]


def test_pods_go_evenly_over_zones_of_different_size() -> None:
    world = zones(5, 2, 1)
    world.create(*(web(f"web-{i}") for i in range(12)))
    world.settle()
    assert per_zone(world) == {"z0": 4, "z1": 4, "z2": 4}


def test_a_soft_constraint_spreads_too_but_holds_nobody_back() -> None:
    world = zones(2, 1, cpu=400)
    world.create(*(web(f"web-{i}", over_zones(hard=False)) for i in range(4)))
    world.settle()
    assert per_zone(world) == {"z0": 2, "z1": 2}
    world.create(*(web(f"more-{i}", over_zones(hard=False)) for i in range(8)))
    world.settle()
    assert per_zone(world) == {"z0": 8, "z1": 4}


def test_zone_and_node_at_once() -> None:
    world = zones(3, 3)
    both = make.spec(spread=[make.spread_over("zone", APP), make.spread_over(HOSTNAME, APP)])
    world.create(*(web(f"web-{i}", both) for i in range(6)))
    world.settle()
    assert len({p.node for p in world.pods.values()}) == 6


def full_zone() -> World:
    """Zone z1 has room for one pod only: the third one waits."""
    world = zones(1, 1)
    small = make.node("z1-0", labels={"zone": "z1"}, cpu=150)
    world.put(small)
    world.create(*(web(f"web-{i}") for i in range(4)))
    world.settle()
    assert per_zone(world) == {"z0": 2, "z1": 1}
    waiting = [p.name for p in world.pods.values() if not p.node]
    assert len(waiting) == 1
    assert "1 node(s) didn't match pod topology spread constraints" in refusal(world)
    return world


def test_a_node_of_the_zone_that_is_behind_wakes_the_waiting_pod() -> None:
    world = full_zone()
    world.put(make.node("z1-1", labels={"zone": "z1"}))
    world.settle()
    assert per_zone(world) == {"z0": 2, "z1": 2}


def test_a_pod_that_goes_wakes_the_waiting_pod() -> None:
    world = full_zone()
    world.delete(next(p.name for p in world.pods.values() if p.node.startswith("z0")))
    world.settle()
    assert per_zone(world) == {"z0": 2, "z1": 1}


def test_a_pod_that_is_being_deleted_does_not_count() -> None:
    world = full_zone()
    leaving = next(p.name for p in world.pods.values() if p.node.startswith("z0"))
    world.update(leaving, deleting=True)
    world.settle()
    assert per_zone(world) == {"z0": 3, "z1": 1}


def test_a_pod_that_comes_to_the_zone_that_is_behind_wakes_the_waiting_pod() -> None:
    world = full_zone()
    world.foreign(web("small", make.spec(cpu=10)), "z1-0")
    world.settle()
    assert per_zone(world) == {"z0": 3, "z1": 2}


def test_a_pod_of_ours_that_comes_there_does_so_too() -> None:
    world = full_zone()
    world.create(web("small", make.spec(cpu=10, selector={"zone": "z1"})))
    world.settle()
    assert per_zone(world) == {"z0": 3, "z1": 2}


def test_a_pod_that_changes_its_labels_wakes_the_waiting_pod() -> None:
    world = full_zone()
    other = next(p.name for p in world.pods.values() if p.node.startswith("z0"))
    world.update(other, labels=(("app", "other"),))
    world.settle()
    assert per_zone(world) == {"z0": 3, "z1": 1}


def test_a_zone_that_vanishes_wakes_the_waiting_pod() -> None:
    world = full_zone()
    on = next(p.name for p in world.pods.values() if p.node == "z1-0")
    world.delete(on)
    world.remove("z1-0")
    world.settle()
    assert per_zone(world) == {"z0": 3}


def test_a_zone_label_that_comes_later_makes_the_node_a_choice() -> None:
    world = World(make.node("z0-0"))
    world.create(web("web-0"))
    world.settle()
    assert per_zone(world) == {}
    assert "(missing required label)" in refusal(world)
    world.put(make.node("z0-0", labels={"zone": "z0"}))
    world.settle()
    assert per_zone(world) == {"z0": 1}


def test_too_few_zones_count_as_if_another_were_empty() -> None:
    world = zones(1, 1)
    world.create(*(web(f"web-{i}", over_zones(min_domains=3)) for i in range(4)))
    world.settle()
    assert per_zone(world) == {"z0": 1, "z1": 1}
    world.put(make.node("z2-0", labels={"zone": "z2"}))
    world.settle()
    assert sorted(per_zone(world).values()) == [1, 1, 2]


def test_a_gang_that_does_not_fit_leaves_the_counts_as_they_were() -> None:
    world = zones(1, 1, cpu=250)
    world.declare(make.gang("g", 6))
    world.create(*(web(f"g-{i}", group="g") for i in range(6)))
    world.settle()
    assert per_zone(world) == {}
    world.create(*(web(f"web-{i}") for i in range(4)))
    world.settle()
    assert per_zone(world) == {"z0": 2, "z1": 2}


def test_a_gang_spreads_like_other_pods_and_starts_whole_or_not_at_all() -> None:
    world = zones(2, 1)
    world.create(web("web-0", over_zones(cpu=7900)), web("web-1", over_zones(cpu=7900)))
    world.settle()
    assert per_zone(world) == {"z0": 1, "z1": 1}
    # z1 has room for two more of them, so z0 may take three.
    world.declare(make.gang("g", 6))
    world.create(*(web(f"g-{i}", over_zones(cpu=50), group="g") for i in range(6)))
    world.settle()
    assert per_zone(world) == {"z0": 1, "z1": 1}
    world.declare(make.gang("g", 5))
    world.settle()
    assert per_zone(world) == {"z0": 4, "z1": 3}


def test_matching_revisions_are_spread_on_their_own() -> None:
    world = zones(1, 1)
    asked = make.spec(spread=[make.spread_over("zone", APP, match_label_keys=("rev",))])
    for rev in ("a", "b"):
        world.create(
            *(make.pod(f"{rev}-{i}", asked, labels={"app": "web", "rev": rev}) for i in range(2))
        )
    world.settle()
    for rev in ("a", "b"):
        assert {n[:2] for n in world.where(f"{rev}-0", f"{rev}-1")} == {"z0", "z1"}


class SpreadingByDefault(World):
    """A world whose one profile packs, but spreads as kube-scheduler does by default."""

    def _new_engine(self) -> Engine:
        packing = next(p for p in profiles() if p.scheduler == names.COST_SAVING)
        plugins = [
            PodTopologySpread() if p.name == PodTopologySpread.name else p for p in packing.plugins
        ]
        return Engine([Profile(names.SCHEDULER, plugins, packing.weights)], seed=self.seed)

    def tell(self, kind: str, name: str, selector: LabelSelector) -> None:
        self.objects[kind, "default", name] = selector
        self.inbox.append(events.ObjectChanged(kind, "default", name, selector))


def four_nodes() -> SpreadingByDefault:
    return SpreadingByDefault(*(make.node(f"n{i}") for i in range(4)))


def test_pods_of_a_service_spread_by_default_and_others_do_not() -> None:
    world = four_nodes()
    world.create(*(make.pod(f"lone-{i}", labels={"app": "lone"}) for i in range(4)))
    world.settle()
    world.tell("Service", "web", APP)
    world.create(*(web(f"web-{i}", make.spec()) for i in range(4)))
    world.settle()
    assert len(set(world.where(*(f"lone-{i}" for i in range(4))))) == 1
    assert len(set(world.where(*(f"web-{i}" for i in range(4))))) == 4


def test_pods_of_one_controller_are_peers_and_those_of_another_are_not() -> None:
    world = four_nodes()
    for name in ("one", "two"):
        world.tell("ReplicaSet", name, APP)
        for number in range(2):
            pod = web(f"{name}-{number}", make.spec())
            world.create(msgspec.structs.replace(pod, controller=("ReplicaSet", name)))
    world.settle()
    assert len(set(world.where("one-0", "one-1", "two-0", "two-1"))) == 4
