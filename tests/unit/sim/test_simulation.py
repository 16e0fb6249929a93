"""The simulation: what happens when, on a virtual clock."""

import math

import make
from alnair.sim.history import History, Stay
from alnair.sim.simulation import Options
from simulation_kit import job, simulate


def stays(history: History, name: str) -> list[Stay]:
    """All stays of a job's pods, in the order of their creation."""
    return [stay for uid in history.jobs[name].pods for stay in history.pods[uid].stays]


def test_a_job_runs_from_its_submission_for_its_duration() -> None:
    history, _ = simulate([make.node(gpus=1)], job("one", at=50, duration=100))
    assert history.jobs["one"].finished == 150
    [stay] = stays(history, "one")
    assert (stay.node, stay.begin, stay.end, stay.how) == ("node", 50, 150, "completed")
    assert [part.milli for part in stay.gpus] == [1000]
    assert history.end == 150


def test_a_job_that_finds_no_room_waits_for_the_one_before_it() -> None:
    history, _ = simulate([make.node(gpus=1)], job("one"), job("two", at=10))
    assert stays(history, "two")[0].begin == 100
    assert history.jobs["two"].finished == 200
    assert history.pods["uid-default-two"].refused == ""


def test_a_job_that_never_fits_is_left_with_the_reason() -> None:
    history, simulation = simulate([make.node(gpus=1)], job("big", make.spec(whole=2)), job("one"))
    assert history.jobs["big"].finished is None
    assert "Insufficient nvidia.com/gpu" in history.pods["uid-default-big"].refused
    assert simulation.jobs_left() == simulation.pods_waiting() == 1


def test_pods_of_a_gang_start_together_or_not_at_all() -> None:
    nodes = [make.node("a", gpus=1), make.node("b", gpus=1)]
    history, _ = simulate(
        nodes, job("one", duration=70), job("gang", at=1, pods=2, gang=True), job("late", at=2)
    )
    begins = {stay.begin for stay in stays(history, "gang")}
    assert len(begins) == 1
    assert begins.pop() >= 70
    assert all(found.finished is not None for found in history.jobs.values())


def test_it_stops_when_it_is_told_to() -> None:
    history, simulation = simulate(
        [make.node(gpus=1)],
        job("one", duration=math.inf),
        job("two", at=90),
        options=Options(until=60),
    )
    assert history.end == simulation.time == 60
    assert list(history.jobs) == ["one"]
    assert stays(history, "one")[0].end is None
