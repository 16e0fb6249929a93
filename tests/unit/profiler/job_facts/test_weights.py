"""What is held of a GPU's memory bounds a model's weights."""

import numpy as np
import pytest

from alnair.profiler.job_facts.weights import CONTEXT, held_mib


def held(*levels: tuple[int, float]) -> float | None:
    memory = np.concatenate([np.full(seconds, mib, float) for seconds, mib in levels])
    return held_mib(np.arange(len(memory), dtype=float), memory)


def test_the_least_that_was_held_counts_without_a_context() -> None:
    assert held((5, 0), (30, 2512), (300, 14_000)) == 2512 - CONTEXT


@pytest.mark.parametrize("levels", [[(600, 0)], [(600, 510)], [(10, 9000)], [(1, 5000)]])
def test_a_context_or_a_moment_is_no_model(levels: list[tuple[int, float]]) -> None:
    assert held(*levels) is None


def test_what_was_not_measured_is_left_out() -> None:
    memory = np.full(60, 3000.0)
    memory[10:20] = np.nan
    assert held_mib(np.arange(60.0), memory) == 3000 - CONTEXT
    assert held_mib(np.arange(60.0), np.full(60, np.nan)) is None


def test_memory_that_never_rests_says_nothing() -> None:
    assert held_mib(np.arange(200.0), np.arange(200.0) * 400 + 1000) is None
