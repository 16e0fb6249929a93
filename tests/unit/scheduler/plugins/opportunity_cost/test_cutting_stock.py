"""What room on a GPU is worth, against programs and knapsacks solved by trying everything."""

import itertools
import random
from collections import Counter

import numpy as np
import pytest

from alnair.scheduler.plugins.opportunity_cost.cutting_stock import UNITS, bound, knapsack, worth
from alnair.traces import openb_files


def patterns(sizes: list[int], room: int = UNITS) -> list[tuple[int, ...]]:
    """All ways to fill a GPU."""
    ranges = (range(room // size + 1) for size in sizes)
    return [
        counts
        for counts in itertools.product(*ranges)
        if sum(c * s for c, s in zip(counts, sizes, strict=True)) <= room
    ]


def fewest(demand: dict[int, float]) -> float:
    """The linear program by its vertices: every set of as many columns as there are sizes."""
    sizes = sorted(demand)
    wanted = np.array([demand[size] for size in sizes])
    surplus = -np.eye(len(sizes))
    columns = [(np.array(p, float), 1.0) for p in patterns(sizes) if any(p)]
    columns += [(surplus[i], 0.0) for i in range(len(sizes))]
    best = np.inf
    for chosen in itertools.combinations(columns, len(sizes)):
        basis = np.array([column for column, _ in chosen]).T
        if abs(np.linalg.det(basis)) < 1e-9:
            continue
        amounts = np.linalg.solve(basis, wanted)
        if (amounts > -1e-9).all():
            best = min(best, float(amounts @ [cost for _, cost in chosen]))
    return best


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_is_the_optimum_of_the_linear_program(seed: int) -> None:
    chance = random.Random(seed)
    sizes = chance.sample(range(240, 1000, 10), chance.choice((2, 3)))
    demand = {size: float(chance.randrange(1, 50)) for size in sizes}
    assert bound(demand) == pytest.approx(fewest(demand))


@pytest.mark.parametrize("seed", range(12))
def test_a_knapsack_is_the_best_of_all_ways_to_fill_it(seed: int) -> None:
    chance = random.Random(seed)
    sizes = chance.sample(range(150, 1001), 3)
    prices = [chance.random() for _ in sizes]
    values = knapsack(sizes, np.array(prices))
    for room in (0, 149, 400, 777, UNITS):
        most = max(
            sum(c * p for c, p in zip(w, prices, strict=True)) for w in patterns(sizes, room)
        )
        assert values[room] == pytest.approx(most)


@pytest.mark.parametrize("seed", range(6))
def test_no_filling_of_a_gpu_is_worth_more_than_the_gpu(seed: int) -> None:
    chance = random.Random(seed)
    demand = {chance.randrange(20, 1000): float(chance.randrange(1, 100)) for _ in range(60)}
    values = worth(demand)
    assert values[0] == 0
    assert values[UNITS] == 1
    assert (np.diff(values) >= 0).all()
    room = np.arange(UNITS + 1)
    left, right = np.meshgrid(room[::10], room[::10])
    fit = left + right <= UNITS
    assert (values[left[fit]] + values[right[fit]] <= values[left[fit] + right[fit]] + 1e-9).all()


@pytest.mark.parametrize(
    ("demand", "values"),
    [
        pytest.param({}, {250: 0.25, 999: 0.999}, id="nobody asks: room is worth its size"),
        pytest.param({500: 3}, {499: 0, 500: 0.5, 999: 0.5}, id="halves: less is worth nothing"),
        pytest.param({600: 5}, {400: 0, 600: 1}, id="two do not fit: each takes a GPU"),
        pytest.param({600: 9, 400: 1}, {400: 0, 600: 1}, id="the fillers are rare: they are free"),
        pytest.param({600: 1, 400: 9}, {400: 0.5, 600: 0.5}, id="many of them: two make a GPU"),
        pytest.param({333: 7}, {333: 1 / 3, 666: 2 / 3}, id="thirds"),
    ],
)
def test_what_room_is_worth(demand: dict[int, float], values: dict[int, float]) -> None:
    found = worth(demand)
    assert {room: found[room] for room in values} == pytest.approx(values)


def test_the_shares_of_the_openb_trace_need_as_many_gpus_as_others_found() -> None:
    shares = Counter(
        p.gpu_milli for p in openb_files.load().pods if p.gpus == 1 and p.gpu_milli < 1000
    )
    assert bound(shares) == pytest.approx(1964.58, abs=0.01)
