"""What a job asks of a plan, as the books of an engine have it."""

import msgspec

from alnair.model.elastic_plan import ElasticDemand
from alnair.processes.controller.elastic.demands import Asking
from alnair.scheduler.advice.worker_room import WorkerTemplate
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.profiles import profiles
from kit import make


def asking(*uids: str, priority: int = 0) -> Asking:
    pod = make.pod("worker", make.spec(whole=1), priority=priority)
    demand = ElasticDemand(key="x", least=1, wish=4, size=3, priority=priority)
    return Asking("uid", 1, demand, WorkerTemplate(make.gang("x", 1), pod, uids))


def engine_of(*changes: events.Event) -> Engine:
    engine = Engine(profiles())
    engine.follow(changes, 1000.0)
    return engine


def test_a_worker_counts_as_placed_where_its_node_is_known() -> None:
    here, gone, waiting = (
        make.pod(f"x-{n}", make.spec(whole=1), node=node) for n, node in enumerate(("a", "b", ""))
    )
    pods = (events.PodChanged(pod) for pod in (here, gone, waiting))
    engine = engine_of(events.NodeChanged(make.node("a", gpus=4)), *pods)
    demand, template = asking(here.uid, gone.uid, waiting.uid, "unseen").seen_in(engine.view)
    assert (demand.placed, demand.size) == (1, 3)
    assert template.pods == (here.uid, gone.uid, waiting.uid, "unseen")


def test_the_priority_is_that_of_the_class_until_admission_has_told_it() -> None:
    pod = make.pod("x-0", make.spec(whole=1), priority=7)
    engine = engine_of(events.PodChanged(pod))
    before, _ = asking("unseen", priority=5).seen_in(engine.view)
    assert before.priority == 5
    after, template = asking(pod.uid, priority=5).seen_in(engine.view)
    assert (after.priority, template.pod.priority) == (7, 7)


def test_the_pod_group_that_is_there_says_what_holds_for_its_workers() -> None:
    there = msgspec.structs.replace(make.gang("x", 3), created=5.0)
    engine = engine_of(events.GangChanged(there))
    _, template = asking().seen_in(engine.view)
    assert template.gang == there
