"""Changes of a cluster: nodes come and go, are cordoned or drained, and pods are submitted."""

import difflib
from collections.abc import Iterator
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from alnair.model import names
from alnair.model.nodes import Node
from alnair.model.workload import Gang, Pod
from alnair.sim.inputs.training_jobs import Bounds
from alnair.sim.whatif import budgets
from alnair.sim.whatif.lookahead import Lookahead

#: Nodes that are named when another was meant.
_NAMED: Final = 5


class ChangeError(Exception):
    """A change that cannot be made; says which, why, and what to do."""


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What is changed, in this order; nodes are named.

    Attributes:
        add: nodes that join.
        remove: nodes that are gone at once, with their pods.
        cordon: nodes that take no more pods.
        drain: nodes that take no more pods and whose pods are evicted.
        objects: of other kinds that are created or changed: kind, namespace, name, value.
        gangs, pods: what is submitted then.
        trainings: of the gangs, those that start with as many pods as there is room for.
    """

    add: tuple[Node, ...] = ()
    remove: tuple[str, ...] = ()
    cordon: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    objects: tuple[tuple[str, str, str, object], ...] = ()
    gangs: tuple[Gang, ...] = ()
    pods: tuple[Pod, ...] = ()
    trainings: dict[tuple[str, str], Bounds] = {}


class Left(msgspec.Struct, frozen=True):
    """A pod that left its node by a change, as it was; it is replaced if a controller owns it."""

    pod: Pod
    how: Literal["drained", "removed"]


class Stays(msgspec.Struct, frozen=True):
    """A pod that a drain leaves where it is, and why."""

    pod: str
    node: str
    why: str


def check(changes: Changes, lookahead: Lookahead) -> None:
    """Refuse changes of what is not there, before any is made.

    Raises:
        ChangeError: says all that is wrong.
    """
    problems = list(_problems(changes, lookahead))
    if problems:
        raise ChangeError("\n".join(problems))


def _problems(changes: Changes, lookahead: Lookahead) -> Iterator[str]:
    nodes = lookahead.api.nodes
    for option, wanted in (
        ("--remove-node", changes.remove),
        ("--cordon", changes.cordon),
        ("--drain", changes.drain),
    ):
        for name in wanted:
            if name not in nodes:
                yield f"{option} {name}: there is no such node{_near(name, nodes)}"
    for name in sorted(set(changes.remove) & {*changes.cordon, *changes.drain}):
        yield f"node {name} is to be removed and to be kept: choose one"
    added: set[str] = set()
    for node in changes.add:
        if node.name in nodes or node.name in added:
            yield f"--add-nodes: there is a node {node.name} already: give the new one another name"
        added.add(node.name)
    there = {(p.namespace, p.name) for p in lookahead.api.pods.values()}
    for pod in changes.pods:
        if (pod.namespace, pod.name) in there:
            yield (
                f"--submit: there is a pod {pod.namespace}/{pod.name} already: "
                "rename the one in the file"
            )
        there.add((pod.namespace, pod.name))
    for gang in changes.gangs:
        if (gang.namespace, gang.name) in lookahead.api.gangs:
            yield (
                f"--submit: there is a PodGroup {gang.namespace}/{gang.name} already: "
                "rename the one in the file, and in the labels of its pods"
            )


def _near(name: str, nodes: dict[str, Node]) -> str:
    close = difflib.get_close_matches(name, nodes, 1)
    if close:
        return f"; did you mean {close[0]}?"
    more = ", …" if len(nodes) > _NAMED else ""
    return f"; there are {', '.join(sorted(nodes)[:_NAMED])}{more}"


def make(changes: Changes, lookahead: Lookahead) -> tuple[list[Left], list[Stays]]:
    """Make the changes but what is submitted; the scheduler decides only during a drain.

    Returns:
        The pods that left their nodes, and those that a drain could not evict.
    """
    api = lookahead.api
    left: list[Left] = []
    for node in changes.add:
        api.put(node)
    for name in changes.cordon + changes.drain:
        api.put(replace(api.nodes[name], unschedulable=True))
    for name in changes.remove:
        for pod in _on(lookahead, name):
            lookahead.evict(pod)
            if not pod.daemon:
                left.append(Left(pod, "removed"))
        api.remove(name)
    drained, staying = _drain(lookahead, changes.drain)
    for kind, namespace, name, value in changes.objects:
        api.set_object(kind, name, value, namespace)
    return left + [Left(pod, "drained") for pod in drained], staying


def submit(changes: Changes, lookahead: Lookahead) -> None:
    """Create what is submitted."""
    api = lookahead.api
    for gang in changes.gangs:
        api.declare(replace(gang, created=gang.created or lookahead.now))
    for pod in changes.pods:
        api.set_pod(lookahead.ours(replace(pod, created=pod.created or lookahead.now)))


def _on(lookahead: Lookahead, node: str) -> list[Pod]:
    return [p for p in lookahead.api.pods.values() if p.node == node and not p.finished]


def _drain(lookahead: Lookahead, nodes: tuple[str, ...]) -> tuple[list[Pod], list[Stays]]:
    """Evict what may be evicted, as `kubectl drain` does: again when a budget has recovered."""
    waiting: list[Pod] = []
    staying: list[Stays] = []
    for name in nodes:
        for pod in _on(lookahead, name):
            if pod.daemon or pod.deleting:
                continue
            if why := _why_not(pod):
                staying.append(Stays(f"{pod.namespace}/{pod.name}", name, why))
            else:
                waiting.append(pod)
    gone: list[Pod] = []
    while waiting:
        going = [pod for pod in waiting if _evict(lookahead, pod)]
        if not going:
            break
        gone += going
        waiting = [pod for pod in waiting if pod not in going]
        if waiting:  # or else the last ones compete with what is submitted
            lookahead.settle()
    for pod in waiting:
        spent = next(b.name for b in budgets.of(lookahead.api, pod) if b.allowed < 1)
        why = f"its disruption budget {spent} allows no eviction"
        staying.append(Stays(f"{pod.namespace}/{pod.name}", pod.node, why))
    return gone, staying


def _why_not(pod: Pod) -> str:
    if not pod.owned:
        return "no controller would replace it"
    if not pod.evictable:
        return f"annotation {names.EVICTABLE} is false"
    return ""


def _evict(lookahead: Lookahead, pod: Pod) -> bool:
    """Evict a pod; returns whether its budgets allowed it."""
    if any(budget.allowed < 1 for budget in budgets.of(lookahead.api, pod)):
        return False
    lookahead.evict(pod)
    return True
