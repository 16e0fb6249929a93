"""A training job that has no pods yet is helped by a round as a gang that waits is."""

from itertools import chain

import msgspec
import pytest

from alnair.kube.objects.training_jobs import ElasticTorchJobWire, project_training_job
from alnair.model.rebalancing import RebalanceBounds
from alnair.model.training_job import TrainingJob
from alnair.model.workload import Pod
from alnair.processes.controller.elastic.demands import Unplaced
from alnair.processes.controller.rebalancing import unplaced_jobs
from alnair.scheduler.advice.rebalance_round import Round, rebalance_round
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.profiles import profiles
from kit import make, training_jobs

NOW = 100_000.0
BOUNDS = RebalanceBounds(every=600)


def training_job(name: str = "train", least: int = 2) -> TrainingJob:
    manifest = training_jobs.torch(name, least, 4)
    job = project_training_job(msgspec.convert(manifest, ElasticTorchJobWire))
    return msgspec.structs.replace(job, namespace="team", uid=f"uid-{name}")


def waiting(
    name: str = "train", least: int = 2, since: float = NOW - 1000, priority: int = 0
) -> Unplaced:
    """A job each of whose workers takes two GPUs."""
    gang = msgspec.structs.replace(make.gang(name, least), namespace="team", created=since)
    pod = make.pod("worker", make.spec(whole=2), namespace="team", priority=priority)
    return Unplaced(training_job(name, least), gang, pod, since)


def tenant(name: str, node: str, slot: int) -> Pod:
    return msgspec.structs.replace(
        make.pod(name, make.spec(whole=1), node=node, owned=True),
        assignment=(("main", (make.share(make.gpu(node, slot)),)),),
        controller=("ReplicaSet", name),
    )


def look(*jobs: Unplaced) -> Round:
    """A round on two nodes of four GPUs, of which `a` has one in use, and `b` three."""
    engine = Engine(profiles())
    nodes = [events.NodeChanged(make.node(name, gpus=4)) for name in "ab"]
    used = (("a", 0), ("b", 0), ("b", 1), ("b", 2))
    pods = [events.PodChanged(tenant(f"{node}{slot}", node, slot)) for node, slot in used]
    supposed = [unplaced_jobs.as_if_made(job) for job in unplaced_jobs.first(jobs)]
    engine.follow([*nodes, *pods, *chain.from_iterable(supposed)], NOW)
    found = rebalance_round(engine.view, BOUNDS, (), NOW)
    return unplaced_jobs.told_of(found, jobs)


def test_pods_move_for_the_least_workers_of_a_job_that_has_none() -> None:
    plan = look(waiting()).plan
    assert plan is not None
    assert [(move.name, move.source) for move in plan.moves] == [("a0", "a")]
    assert plan.gets == "4 GPUs"
    assert (plan.job, plan.name) == ("ElasticTorchJob", "ElasticTorchJob team/train")
    assert plan.pod == ("team", "train", "uid-train")


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(waiting(since=NOW - 599), id="it has just come"),
        pytest.param(waiting(least=1), id="it would start as things are"),
    ],
)
def test_nobody_moves_for_a_job_that_waits_for_something_else(job: Unplaced) -> None:
    assert look(job) == Round()


def test_a_job_for_which_nothing_can_be_done_is_declined() -> None:
    found = look(waiting(least=9))
    assert (found.plan, [one.reason for one in found.declined]) == (None, ["no-plan"])


def test_of_many_jobs_a_round_looks_at_a_few_that_go_first() -> None:
    jobs = [waiting(f"j{n}", since=NOW - n) for n in range(40)]
    urgent = waiting("urgent", since=NOW, priority=9)
    first = [one.job.name for one in unplaced_jobs.first([*jobs, urgent])]
    assert (len(first), first[:3]) == (16, ["urgent", "j39", "j38"])
