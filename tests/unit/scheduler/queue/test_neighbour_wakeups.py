"""Whom a pod that comes may help, without a look at any node."""

from alnair.model.workload import LabelSelector, PodAffinity, PodSpec, PodTerm
from alnair.scheduler.queue.neighbour_wakeups import NeighbourChanges, depends_on_neighbours
from alnair.scheduler.state.pods.pod_classes import Classes
from kit import make

WEB = make.selecting(app="web")


def class_of(asked: PodSpec) -> PodSpec:
    classes = Classes()
    classes.notice(asked)
    return classes.of(make.pod("waiting", asked))


def near(**term: object) -> PodSpec:
    affinity = PodAffinity(required=(PodTerm("zone", WEB, **term),))  # type: ignore[arg-type]
    return class_of(make.spec(pod_affinity=affinity))


def helped(spec: PodSpec, app: str = "web", namespace: str = "default") -> bool:
    changes = NeighbourChanges()
    changes.pod_came(make.pod("came", namespace=namespace, labels={"app": app}))
    return changes.may_help(spec)


def test_a_spread_is_helped_by_pods_that_it_counts() -> None:
    hard = class_of(make.spec(spread=[make.spread_over("zone", WEB)]))
    soft = class_of(make.spec(spread=[make.spread_over("zone", WEB, hard=False)]))
    assert depends_on_neighbours(hard)
    assert not depends_on_neighbours(soft)
    assert helped(hard)
    assert not helped(hard, app="db")
    assert not helped(hard, namespace="other")


def test_a_pod_that_wants_others_near_is_helped_by_those() -> None:
    assert helped(near())
    assert not helped(near(), app="db")
    assert not helped(near(), namespace="other")
    assert helped(near(namespaces=("other",)), namespace="other")
    assert helped(near(namespace_selector=LabelSelector()), namespace="anywhere")


def test_a_node_that_went_may_help_any_of_them_and_is_forgotten() -> None:
    changes = NeighbourChanges()
    assert not changes
    changes.node_went()
    assert changes
    assert changes.may_help(near())
    changes.clear()
    assert not changes
