"""When memory will be full, said only where it has grown so before."""

import random

import pytest

from alnair.profiler.memory_course import COVERAGE, MemoryCourse

LIMIT = 80_000.0


def course(amounts: list[float], every: float = 30.0) -> MemoryCourse:
    made = MemoryCourse()
    for number, amount in enumerate(amounts):
        made.add(number * every, amount)
    return made


def test_a_leak_is_told_with_the_time_that_is_left() -> None:
    found = course([20_000 + 500 * n for n in range(100)]).filling(LIMIT)
    assert found is not None
    left = (LIMIT - 69_500) / 500 * 30
    assert left <= found.seconds <= 1.3 * left
    assert found.coverage >= COVERAGE


@pytest.mark.parametrize(
    "amounts",
    [
        [60_000.0] * 200,  # steady
        [20_000 + 3000.0 * min(n, 15) for n in range(200)],  # it grew, and stopped
        [40_000 + 20_000.0 * (n % 20 < 10) for n in range(200)],  # up and down
        [79_000.0 + n for n in range(20)],  # far too little to matter
        [10_000.0, 79_000.0],  # nothing was seen before
    ],
)
def test_memory_that_does_not_go_on_growing_fills_nothing(amounts: list[float]) -> None:
    assert course(amounts).filling(LIMIT) is None


def test_it_is_full_in_time_in_the_part_of_cases_that_is_stated() -> None:
    held = total = 0
    for seed in range(60):
        chance = random.Random(seed)
        rate, noise = chance.uniform(100, 600), chance.uniform(0.2, 1.0)
        used, amounts = 10_000.0, []
        while used < LIMIT:
            amounts.append(used)
            used += max(0.0, rate * chance.gauss(1, noise))
        for part in (0.8, 0.9, 0.95):
            seen = amounts[: int(part * len(amounts))]
            found = course(seen[-480:]).filling(LIMIT)
            if found is not None:
                total += 1
                held += (len(amounts) - len(seen)) * 30 <= found.seconds
    assert total >= 60
    assert held / total >= COVERAGE


def test_after_a_pause_everything_begins_anew() -> None:
    made = course([20_000 + 500.0 * n for n in range(100)])
    made.add(100 * 30 + 5000, 70_000)
    assert made.filling(LIMIT) is None
