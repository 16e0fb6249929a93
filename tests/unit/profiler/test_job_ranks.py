"""Stragglers and the sum of a job, from what its pods tell now and then."""

import csv
import gzip
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from alnair.model.api_types import SlowRank, Workload
from alnair.profiler.job_ranks import LOOKS, PATIENCE, JobRanks
from alnair.profiler.job_workload import Member, job_workload


def member(rank: int, at: float, period: float | None = 1.0, **more: Any) -> Member:
    return Member(f"train-{rank}", at, Workload(1, "", period_s=period, **more), rank)


def looks(ranks: JobRanks, count: int, slow: dict[int, float], begin: float = 0.0) -> float:
    chance = random.Random(1)
    for number in range(count):
        at = begin + 30.0 * number + 1
        now = [member(r, at, chance.gauss(1, 0.02) * slow.get(r, 1.0)) for r in range(6)]
        ranks.take(now, at, f"t{at:g}")
    return begin + 30.0 * count


def test_a_rank_that_is_slow_is_named_within_three_looks_and_again_not_when_it_is_not() -> None:
    ranks = JobRanks()
    at = looks(ranks, 10, {})
    assert ranks.slow == ()
    at = looks(ranks, LOOKS, {3: 1.6}, at)
    (found,) = ranks.slow
    assert (found.pod, found.rank) == ("train-3", 3)
    assert found.slowdown == pytest.approx(1.6, rel=0.1)
    looks(ranks, LOOKS + 1, {}, at)
    assert ranks.slow == ()


def test_one_that_is_slow_from_the_beginning_is_named_too() -> None:
    ranks = JobRanks()
    looks(ranks, LOOKS, {0: 2.0})
    assert [one.pod for one in ranks.slow] == ["train-0"]


def test_even_ranks_are_never_named() -> None:
    ranks = JobRanks()
    looks(ranks, 300, {})
    assert ranks.slow == ()


def test_ranks_that_wait_for_each_other_are_told_by_their_own_work() -> None:
    ranks = JobRanks()
    for number in range(LOOKS):
        at = 30.0 * number + 1
        now = [member(r, at, 1.0, busy_s=0.9 if r == 4 else 0.5) for r in range(6)]
        ranks.take(now, at, "t")
    assert [one.pod for one in ranks.slow] == ["train-4"]


def test_of_two_that_wait_for_each_other_nobody_is_named() -> None:
    ranks = JobRanks()
    for number in range(9):
        at = 30.0 * number + 1
        ranks.take([member(0, at, busy_s=0.9), member(1, at, busy_s=0.3)], at, "t")
    assert ranks.slow == ()


def test_other_roles_are_not_compared() -> None:
    ranks = JobRanks()
    for number in range(9):
        at = 30.0 * number + 1
        now = [member(r, at) for r in range(3)]
        evaluator = Member("eval-0", at, Workload(1, "", period_s=9.0), 0, "evaluator")
        ranks.take([*now, evaluator], at, "t")
    assert ranks.slow == ()


def test_who_says_nothing_new_is_not_waited_for_for_ever() -> None:
    ranks = JobRanks()
    for number in range(2 * LOOKS):
        at = PATIENCE * number + 1
        ranks.take([member(r, 1.0, 2.0 if r == 1 else 1.0) for r in range(4)], at, "t")
    assert [one.pod for one in ranks.slow] == ["train-1"]


def test_what_another_leader_found_stands_until_enough_was_seen() -> None:
    before = SlowRank("train-2", 1.5, "then", 2)
    ranks = JobRanks([before, SlowRank("gone", 2.0, "then")])
    at = looks(ranks, LOOKS - 1, {2: 1.5})
    assert [one.pod for one in ranks.slow] == ["train-2"]
    looks(ranks, 1, {2: 1.5}, at)
    assert ranks.slow[0].since == "then"


def test_a_job_is_as_far_as_its_last_pod() -> None:
    made = job_workload(
        [
            member(0, 100.0, 1.0, type="training", phase="training", progress=0.5, eta_s=100.0),
            member(1, 80.0, 1.2, type="training", phase="training", progress=0.4, eta_s=150.0),
            member(2, 100.0, None, phase="checkpoint", idle_since="x", step=7),
        ],
        now=110.0,
        t="now",
    )
    assert (made.pods, made.type, made.phase, made.idle) == (3, "training", "training", 1)
    assert (made.progress, made.period_s, made.step) == (0.4, 1.2, 7)
    assert made.eta_s == 120.0, "150 s from then on"


def test_what_half_of_the_pods_do_is_not_what_the_job_does() -> None:
    pods = [member(0, 0.0, phase="training"), member(1, 0.0, phase="evaluation")]
    assert job_workload(pods, 0.0, "now").phase is None


@pytest.mark.parametrize("job", [1, 2])
def test_real_workers_seen_now_and_then_raise_no_false_alarm(job: int) -> None:
    data = Path(__file__).parents[3] / "benchmarks" / "data" / "pai-minibatch"
    times: dict[int, list[float]] = defaultdict(list)
    with gzip.open(data / f"job_{job}_norm.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            times[int(row["worker"])].append(float(row["batch_time_norm"]))
    ranks, steps = JobRanks(), 10
    for look in range(min(map(len, times.values())) // steps):
        at = 30.0 * look + 1
        mine = slice(look * steps, (look + 1) * steps)
        ranks.take([member(w, at, sum(t[mine]) / steps) for w, t in times.items()], at, "t")
        assert ranks.slow == ()
