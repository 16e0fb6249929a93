"""The fair plan of live clusters in a simulation, on the scheduler's own books."""

import math
import pickle

import pytest

from alnair.history.history import History
from alnair.sim.elastic import FairPlan
from alnair.sim.inputs import InputOptions, Mix, load
from alnair.sim.jobs import Elastic
from kit import invariants, make
from kit.simulation import job, simulate


def finished(history: History, name: str) -> float | None:
    return history.jobs[name].finished


def test_a_job_grows_into_what_is_free_and_makes_room_for_who_waits() -> None:
    history, simulation = simulate(
        [make.node(gpus=4)],
        job("elastic", duration=1000, elastic=Elastic(least=1, most=4)),
        job("other", make.spec(whole=3), at=100, duration=200),
        elastic=FairPlan(),
    )
    # At 4 times its speed until 100 and from 300 on, alone between.
    assert history.pods["uid-default-other"].stays[0].begin == 100
    assert finished(history, "elastic") == pytest.approx(300 + (1000 - 400 - 200) / 4)
    assert simulation.work[1] == 0


def test_two_jobs_share_what_there_is() -> None:
    elastic = Elastic(least=1, most=8)
    jobs = [job(name, duration=1000, at=at, elastic=elastic) for name, at in (("a", 0), ("b", 100))]
    history, _ = simulate([make.node(gpus=8)], *jobs, elastic=FairPlan())
    # The second begins with one GPU at once; the first shares after its time of rest is over.
    assert history.jobs["b"].submitted == 100
    assert finished(history, "a") == pytest.approx(100 + 200 / 4, abs=25)


def test_workers_are_counted_on_nodes_and_not_in_sums() -> None:
    """Two free GPUs on two nodes are no room for a worker of two."""
    nodes = [make.node(f"n{i}", gpus=3) for i in range(2)]
    wide = job("wide", make.spec(whole=2), duration=100, elastic=Elastic(least=1, most=3))
    history, _ = simulate(nodes, wide, elastic=FairPlan())
    assert finished(history, "wide") == pytest.approx(50), "two workers, and no third"


def test_a_gang_starts_with_its_least_where_there_is_no_more() -> None:
    gang = job("gang", pods=4, gang=True, duration=100, elastic=Elastic(least=2, most=4))
    history, _ = simulate([make.node(gpus=2)], gang, elastic=FairPlan())
    assert finished(history, "gang") == pytest.approx(200)
    rigid, _ = simulate([make.node(gpus=2)], gang)
    assert finished(rigid, "gang") is None


@pytest.mark.parametrize("seed", range(4))
def test_random_jobs_all_end_and_nothing_is_used_twice(seed: int) -> None:
    mix = Mix(jobs=40, per_hour=120, gpus=((0.5, 1), (1, 2), (2, 2), (4, 2)), spread=0.5)
    options = InputOptions(nodes="2x4xA100", elastic_share=0.7, seed=seed, mix=mix)
    found = load(["synthetic"], options)
    assert any(one.elastic for one in found.scenario.jobs)
    scenario = found.scenario
    history, simulation = simulate(scenario.nodes, *scenario.jobs, elastic=FairPlan())
    assert all(one.finished is not None for one in history.jobs.values())
    invariants.check(simulation.engine)
    again, other = simulate(scenario.nodes, *scenario.jobs, elastic=FairPlan())
    assert (simulation.digest, history.end) == (other.digest, again.end)
    assert math.isfinite(history.end)


def test_a_simulation_with_a_plan_can_be_kept() -> None:
    elastic = job("elastic", duration=100, elastic=Elastic(least=1, most=4))
    _, simulation = simulate([make.node(gpus=4)], elastic, elastic=FairPlan())
    assert pickle.loads(pickle.dumps(simulation)).digest == simulation.digest
