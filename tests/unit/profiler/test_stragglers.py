"""Stragglers in real step times of ten workers, and in made-up ones."""

import csv
import gzip
import random
from collections import defaultdict
from pathlib import Path

import pytest

from alnair.profiler.stragglers import Straggler, StragglerDetector

DATA = Path(__file__).parents[3] / "benchmarks" / "data" / "pai-minibatch"
Steps = list[dict[int, float]]


def real(job: int) -> Steps:
    times: dict[int, list[float]] = defaultdict(list)
    with gzip.open(DATA / f"job_{job}_norm.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            times[int(row["worker"])].append(float(row["batch_time_norm"]))
    return [dict(zip(times, step, strict=True)) for step in zip(*times.values(), strict=False)]


def even(ranks: int, steps: int) -> Steps:
    chance = random.Random(1)
    return [{rank: chance.gauss(1, 0.02) for rank in range(ranks)} for _ in range(steps)]


def named(steps: Steps) -> dict[int, list[int]]:
    detector, found = StragglerDetector(), defaultdict(list)
    for n, step in enumerate(steps):
        for one in detector.add(step):
            found[one.rank].append(n)
    return dict(found)


def test_the_straggler_that_alibaba_saw_in_the_first_job_is_named_and_no_other() -> None:
    found = named(real(1))
    assert list(found) == [6]
    assert 181 < found[6][0] <= 191  # it got slow at 181


def test_workers_that_differ_all_the_time_are_no_stragglers() -> None:
    assert named(real(2)) == {}


@pytest.mark.parametrize("ranks", [2, 3, 10, 11])
def test_a_rank_that_gets_slow_is_named_within_ten_steps_and_let_go_when_it_is_not(
    ranks: int,
) -> None:
    steps = even(ranks, 160)
    for step in steps[60:100]:
        step[1] *= 1.4
    found = named(steps)
    assert list(found) == [1]
    assert 60 <= found[1][0] < 70
    assert 100 <= found[1][-1] < 110


def test_how_much_slower_is_told() -> None:
    steps = even(8, 80)
    for step in steps[60:]:
        step[3] *= 2
    detector = StragglerDetector()
    last = [detector.add(step) for step in steps][-1]
    assert [one.rank for one in last] == [3]
    assert last[0].slowdown == pytest.approx(2, rel=0.05)
    assert not last[0].from_start


def test_a_rank_that_is_slow_from_the_start_is_named_beside_the_others() -> None:
    steps = even(8, 30)
    for step in steps:
        step[5] *= 1.6
    detector = StragglerDetector()
    told = [detector.add(step) for step in steps]
    assert told[9][0].rank == 5
    assert told[9][0].from_start
    assert [one.rank for one in told[-1]] == [5]


def test_all_ranks_together_and_single_steps_are_no_stragglers() -> None:
    steps = even(8, 120)
    for step in steps[40:80]:
        for rank in step:
            step[rank] *= 3
    for n in range(20, 120, 9):
        steps[n][n % 8] *= 6
    assert named(steps) == {}


def test_a_rank_that_left_is_forgotten_and_nonsense_is_not_judged() -> None:
    detector = StragglerDetector()
    for step in even(4, 30):
        step[2] *= 1.6
        slow = detector.add(step)
    assert [one.rank for one in slow] == [2]
    assert detector.add({0: 1.0, 1: 1.0, 3: 1.0}) == []
    assert detector.add({0: float("nan"), 1: -1.0}) == []
    assert detector.add({}) == []


def test_a_finding_is_plain_data() -> None:
    assert Straggler(3, 17, 1.5) == Straggler(rank=3, since=17, slowdown=1.5, from_start=False)
