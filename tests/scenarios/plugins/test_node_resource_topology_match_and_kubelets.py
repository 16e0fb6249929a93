"""Whatever comes and goes, kubelets can align what we bind, though their reports come late.

Kubelets here start pods in the order of their bindings, each in the lowest zone that will do.
"""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from alnair.model.action import Action, Bind
from alnair.model.numa_topology import SINGLE_NUMA, NumaTopology, NumaZone
from alnair.model.pods_fingerprint import pods_fingerprint
from alnair.model.workload import ContainerPart, Pod, PodSpec
from kit import make
from kit.world import World

CORES = {"a": (8, 8), "b": (6, 2, 4), "c": (3,)}


class Kubelet:
    """One node's Topology Manager; `rejected` are the pods that it could not align."""

    def __init__(self, name: str, *, pod_scope: bool, fingerprints: bool) -> None:
        self.name = name
        self.pod_scope = pod_scope
        self.fingerprints = fingerprints
        self.free = list(CORES[name])
        self.started: dict[str, list[tuple[int, int]]] = {}
        self.rejected: list[str] = []

    def start(self, pod: Pod) -> None:
        parts = [dict(p.requests)["cpu"] // 1000 for p in pod.spec.containers]
        taken: list[tuple[int, int]] = []
        for cores in [sum(parts)] if self.pod_scope else parts:
            zone = next((z for z, free in enumerate(self.free) if free >= cores), None)
            if zone is None:
                self.rejected.append(pod.name)
                break
            self.free[zone] -= cores
            taken.append((zone, cores))
        self.started[pod.name] = taken

    def stop(self, pod: Pod) -> None:
        for zone, cores in self.started.pop(pod.name):
            self.free[zone] += cores

    def report(self, now: float) -> NumaTopology:
        running = pods_fingerprint(("default", name) for name in self.started)
        return NumaTopology(
            tuple(NumaZone(z, (("cpu", 1000 * free),)) for z, free in enumerate(self.free)),
            policy=SINGLE_NUMA,
            pod_scope=self.pod_scope,
            reported=now // 1,
            fingerprint=running if self.fingerprints else "",
        )


class Cluster(World):
    """A world whose kubelets start what is bound."""

    def __init__(self, *, pod_scope: bool, fingerprints: bool) -> None:
        super().__init__(*(make.node(n, cpu=1000 * sum(c)) for n, c in CORES.items()))
        self.kubelets = {
            n: Kubelet(n, pod_scope=pod_scope, fingerprints=fingerprints) for n in CORES
        }
        for name in CORES:
            self.export(name)
        self.settle(0)

    def left(self, node: str) -> list[float]:
        """The cores that the engine believes free in each zone."""
        accounts = self.engine._accounts
        zones, row = accounts.zones, accounts.columns.row_of[node]
        free = zones.free[zones.resources["cpu"], :, row]
        return [cpu / 1000 for cpu in free.tolist()[: len(CORES[node])]]

    def export(self, node: str) -> None:
        self.set_object("NodeResourceTopology", node, self.kubelets[node].report(self.now))

    def carry_out(self, which: int = 0) -> None:
        action: Action = self.outbox[which]
        super().carry_out(which)
        if isinstance(action, Bind):
            self.kubelets[action.node].start(action.pod)


def asking(*cores: int) -> PodSpec:
    parts = tuple(ContainerPart((("cpu", 1000 * n),)) for n in cores)
    requests = (("cpu", 1000 * sum(cores)), ("pods", 1))
    return PodSpec(requests, guaranteed=True, containers=parts)


steps = st.lists(
    st.one_of(
        st.lists(st.integers(1, 5), min_size=1, max_size=2),  # a pod with such containers comes
        st.sampled_from(sorted(CORES)),  # a node reports
        st.floats(0.1, 1.5),  # time passes
        st.just("delete"),
        st.just("restart"),
    ),
    min_size=5,
    max_size=30,
)


@given(what=steps, pod_scope=st.booleans(), fingerprints=st.booleans(), data=st.data())
def test_no_kubelet_has_to_reject_what_is_bound(
    what: list[list[int] | str | float], pod_scope: bool, fingerprints: bool, data: st.DataObject
) -> None:
    world = Cluster(pod_scope=pod_scope, fingerprints=fingerprints)
    for number, step in enumerate(what):
        match step:
            case list():
                world.create(make.pod(f"p{number}", asking(*step), created=world.now))
            case float():
                world.now += step
            case "restart":
                world.restart()
            case "delete":
                bound = sorted(p.name for p in world.pods.values() if p.node)
                if bound:
                    pod = world.pod(data.draw(st.sampled_from(bound)))
                    world.kubelets[pod.node].stop(pod)
                    world.delete(pod.name)
            case str():
                world.export(step)
        world.settle(0)
        assert not any(k.rejected for k in world.kubelets.values())
        for name, kubelet in world.kubelets.items():
            assert all(
                ours <= theirs for ours, theirs in zip(world.left(name), kubelet.free, strict=True)
            )
    world.check_room()


def test_both_zones_of_a_node_are_used_before_it_reports() -> None:
    world = Cluster(pod_scope=False, fingerprints=True)
    for number in range(3):
        world.create(make.pod(f"p{number}", asking(5), created=float(number)))
    world.settle(0)
    assert sorted(world.where("p0", "p1", "p2")) == ["a", "a", "b"]
    assert world.kubelets["a"].free == [3, 3]
    world.create(make.pod("p3", asking(4)))
    world.settle(0)
    assert world.where("p3") == ["b"]
    assert world.kubelets["b"].free == [1, 2, 0]


def test_pods_are_one_class_whatever_their_containers_hide() -> None:
    """The same sum in other containers is another class: zones tell them apart."""
    one, two = asking(4), asking(2, 2)
    assert msgspec.structs.replace(two, containers=one.containers) == one != two
