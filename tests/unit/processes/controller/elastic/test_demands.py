"""What a job asks of a plan, as the books of an engine have it."""

from typing import Any

import msgspec

from alnair.kube.objects.training_jobs import ElasticTorchJobWire, project_training_job
from alnair.model.api_types import Condition
from alnair.model.elastic_plan import ElasticDemand
from alnair.model.elastic_types import JobStatus
from alnair.processes.controller.elastic.cache import JobCache
from alnair.processes.controller.elastic.demands import Asking, Demands
from alnair.scheduler.advice.worker_room import WorkerTemplate
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.profiles import profiles
from kit import make, training_jobs


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


def test_a_job_that_a_plan_has_found_no_room_for_waits_with_the_least_of_its_workers() -> None:
    made = project_training_job(msgspec.convert(training_jobs.torch("a", 2), ElasticTorchJobWire))
    says = Condition("Scheduled", "False", "NoRoom", "no room yet", "2026-01-01T00:00:00Z")
    job = msgspec.structs.replace(
        made, namespace="team", uid="1", generation=1, status=JobStatus(conditions=[says])
    )
    client: Any = None
    cache = JobCache(client, lambda _: None)
    key = (job.kind, "team", "a")
    cache.jobs[key] = job
    demands = Demands(cache, lambda _: 7)
    demands.mark(key)
    demands.now()
    demands.resize(key, 0, None)
    (one,) = demands.unplaced()
    assert (one.job, one.gang.min_member, one.pod.priority) == (job, 2, 7)
    assert one.since == one.gang.created == 1767225600.0
    # A plan has just given it room, which its status does not say yet.
    demands.resize(key, 2, 1.0)
    assert demands.unplaced() == []
