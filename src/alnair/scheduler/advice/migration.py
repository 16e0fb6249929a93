"""How the workers of an elastic job leave nodes while it runs on, with never fewer than it needs.

A worker that the job can spare is evicted, and its replacement goes elsewhere, one at a time. If it
can spare none, it first grows elsewhere by one, and gives that one back in the end: a StatefulSet
gives a worker that is evicted back under its own number, and takes the highest number away first.
Pods that are not gang members are moved by `alnair.scheduler.advice.rebalance`.
"""

from collections.abc import Collection
from typing import Final, Literal

import msgspec
import numpy as np

from alnair.model import names
from alnair.scheduler.engine.view import View
from alnair.scheduler.gangs.gangs import GangKey, GangState
from alnair.scheduler.state.accounts import Record, State
from alnair.scheduler.state.disruption_budgets import budgets, split
from alnair.scheduler.state.nodes.columns import Mask

#: grow: one more worker, which goes to `target`; move: evict `pod`, whose replacement goes there;
#: shrink: one worker less, the one that came by growing.
What = Literal["grow", "move", "shrink"]
_NONE_TO_SPARE: Final = "it has no worker to spare, and may not have more than {}"


class MigrationStep(msgspec.Struct, frozen=True):
    """One step; the next one begins when the worker that it brings has a node and works."""

    what: What
    pod: str = ""
    source: str = ""
    target: str = ""


class MigrationPlan(msgspec.Struct, frozen=True):
    """The steps in their order; none with a `problem`, or if nothing is to be moved."""

    steps: tuple[MigrationStep, ...] = ()
    problem: str = ""


def migration(
    view: View, key: GangKey, leave: Collection[str], most: int, *, together: bool = False
) -> MigrationPlan:
    """Return how an elastic gang's members leave these nodes; the books stay as they were.

    Args:
        view: of an engine between two steps.
        key: namespace and name of its PodGroup.
        leave: names of nodes that it shall not be on any more.
        most: workers that the job may have for a while.
        together: they all begin anew, as those of torchrun do: none needs to be spared.
    """
    name = "{}/{}".format(*key)
    state = view.find_gang(key)
    if state is None or state.gang is None:
        return MigrationPlan(problem=f"PodGroup {name} does not exist")
    if not state.elastic:
        problem = f"PodGroup {name} is not elastic: write annotation {names.ELASTIC_MIN} on it"
        return MigrationPlan(problem=problem)
    staying = [r for r in state.placed() if r.row >= 0]
    leaving = sorted((r for r in staying if r.node in leave), key=lambda r: r.pod.name)
    if not leaving:
        return MigrationPlan()
    if problem := _why_not(view, state, leaving):
        return MigrationPlan(problem=f"{name}: {problem}")
    grows = len(staying) <= state.min_member and not together
    if grows and len(staying) >= most:
        return MigrationPlan(problem=f"{name}: {_NONE_TO_SPARE.format(most)}")
    return _tried(view, name, leaving, leave, grows=grows)


def _why_not(view: View, state: GangState, leaving: list[Record]) -> str:
    """Return why these members cannot leave, one after the other; empty if they can."""
    if len(state.placed()) < state.min_member:
        return "it has fewer workers than its minimum: let it get them first"
    kept = budgets(view.cluster.objects)
    for record in leaving:
        pod = record.pod
        if record.state is not State.BOUND or record.in_flight:
            return f"pod {pod.name} is on its way"
        if not pod.owned:
            return f"no controller would replace pod {pod.name}"
        if not pod.evictable:
            return f"annotation {names.EVICTABLE} of pod {pod.name} is false"
        if pod.scheduler not in view.profiles:
            return f"the scheduler of pod {pod.name} is {pod.scheduler}"
        if split([record], kept)[0]:
            return f"the disruption budget of pod {pod.name} allows no eviction now"
    return ""


def _tried(
    view: View, name: str, leaving: list[Record], leave: Collection[str], *, grows: bool
) -> MigrationPlan:
    columns = view.cluster.columns
    elsewhere: Mask = np.ones(columns.n, bool)
    for node in leave:
        if (row := columns.row_of.get(node)) is not None:
            elsewhere[row] = False
    steps: list[MigrationStep] = []
    with view.experiment() as experiment, experiment.attempt() as (statement, lifted):
        experiment.hold_for(leaving)

        def placed(record: Record) -> str:
            profile = view.profiles[record.pod.scheduler]
            return "" if statement.place(record, profile, elsewhere) else record.node

        if grows:
            # One like it, which is on the books beside it.
            pod = leaving[0].pod
            further = msgspec.structs.replace(pod, uid=f"{pod.uid}+", node="", assignment=())
            target = placed(experiment.record(further))
            if not target:
                problem = f"{name}: it has no worker to spare, and a further one fits nowhere else"
                return MigrationPlan(problem=problem)
            steps.append(MigrationStep("grow", target=target))
        for record in leaving:
            source, mover = record.node, record.pod.name
            lifted.lift(record)
            target = placed(record.replacement())
            if not target:
                problem = f"{name}: pod {mover} fits on no node but those that it shall leave"
                return MigrationPlan(problem=problem)
            steps.append(MigrationStep("move", mover, source, target))
    if grows:
        steps.append(MigrationStep("shrink"))
    return MigrationPlan(tuple(steps))
