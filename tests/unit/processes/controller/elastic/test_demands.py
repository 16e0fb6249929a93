"""What a job asks of a plan, as the books of an engine have it."""

from typing import Any

import msgspec

from alnair.kube.objects.training_jobs import ElasticTorchJobWire, project_training_job
from alnair.model.api_types import Condition
from alnair.model.elastic_plan import ElasticDemand
from alnair.model.elastic_types import JobStatus
from alnair.processes.controller.elastic.cache import JobCache
from alnair.processes.controller.elastic.children import ChildSet
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


def known(*manifests: training_jobs.Manifest) -> tuple[JobCache, Demands]:
    """Training jobs of a team that have just been seen."""
    client: Any = None
    cache = JobCache(client, lambda _: None)
    demands = Demands(cache, lambda _: 7)
    for manifest in manifests:
        made = project_training_job(msgspec.convert(manifest, ElasticTorchJobWire))
        key = (made.kind, "team", made.name)
        cache.jobs[key] = msgspec.structs.replace(
            made, namespace="team", uid=made.name, generation=1
        )
        demands.mark(key)
    return cache, demands


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
    cache, demands = known(training_jobs.torch("a", 2))
    says = Condition("Scheduled", "False", "NoRoom", "no room yet", "2026-01-01T00:00:00Z")
    [(key, job)] = cache.jobs.items()
    job = msgspec.structs.replace(job, status=JobStatus(conditions=[says]))
    cache.jobs[key] = job
    demands.now()
    demands.resize(key, 0, None)
    (one,) = demands.unplaced()
    assert (one.job, one.gang.min_member, one.pod.priority) == (job, 2, 7)
    assert one.since == one.gang.created == 1767225600.0
    # A plan has just given it room, which its status does not say yet.
    demands.resize(key, 2, 1.0)
    assert demands.unplaced() == []


def test_a_job_whose_pod_is_none_is_left_out_and_holds_nobody_up() -> None:
    wrong = training_jobs.torch("wrong", affinity={"nodeAffinity": 3})
    cache, demands = known(training_jobs.torch("right"), wrong)
    right, left_out = cache.jobs
    assert [key for key, _ in demands.now()] == [right]
    assert demands.left_out() == [left_out]
    assert demands.unreadable(left_out)
    assert demands.size(left_out) is None
    # It is told once, and asks for room when it is put right.
    demands.mark(left_out)
    demands.now()
    assert demands.left_out() == []
    cache.jobs[left_out] = msgspec.structs.replace(cache.jobs[right], uid="wrong", generation=2)
    assert demands.mark(left_out)
    assert len(demands.now()) == 2
    assert not demands.unreadable(left_out)


def test_a_job_of_which_the_api_server_takes_nothing_needs_no_room() -> None:
    cache, demands = known(training_jobs.torch("a"))
    [(key, job)] = cache.jobs.items()
    demands.now()
    demands.resize(key, 3, 1.0)
    says = Condition("Created", "False", "Refused", "no such pod", "2026-01-01T00:00:00Z")
    cache.jobs[key] = msgspec.structs.replace(job, status=JobStatus(conditions=[says]))
    assert not demands.mark(key), "nobody waits for a plan"
    assert demands.now() == []
    # Its workers hold GPUs, whatever else of it is refused.
    workers = ChildSet(key, owner=job.uid, uid="set", role="worker", size=3)
    cache._sets[key]["set:a-workers"] = workers
    demands.mark(key)
    assert [found for found, _ in demands.now()] == [key]


def test_a_job_that_is_made_anew_under_its_name_has_not_what_the_former_one_was_given() -> None:
    cache, demands = known(training_jobs.torch("a", 8))
    [(key, job)] = cache.jobs.items()
    demands.now()
    assert demands.resize(key, 8, None)
    cache.jobs[key] = msgspec.structs.replace(job, uid="another")
    assert demands.mark(key), "it waits for a plan"
    assert demands.size(key) is None
    assert not demands.resize(key, 8, None), "of a plan that was begun before"
    demands.now()
    demands.resize(key, 3, None)
    del cache.jobs[key]
    demands.mark(key)
    assert demands.size(key) is None
