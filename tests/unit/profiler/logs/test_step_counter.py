"""Steps of a program, counted from what it prints."""

import pytest

from alnair.profiler.logs.linear_pattern import PatternError
from alnair.profiler.logs.step_counter import StepCounter


def steps(pattern: str | None, *lines: str) -> list[float | None]:
    counter, seen = StepCounter(pattern), []
    for line in lines:
        counter.feed(f"{line}\n".encode())
        seen.append(counter.done)
    return seen


def test_known_formats_count_from_the_first_step_seen() -> None:
    assert steps(None, "hello", "step 10/100", "step 30/100") == [None, 0, 20]


def test_a_count_that_begins_anew_goes_on() -> None:
    assert steps(None, "step 10", "step 12", "step 1", "step 4") == [0, 2, 2, 5]


def test_a_pattern_without_groups_counts_its_lines() -> None:
    assert steps("^tick", "tick", "tock", "tick") == [1, 1, 2]


def test_a_pattern_with_a_group_reads_it() -> None:
    assert steps(r"n=(?P<step>\d+)", "n=5", "step 9", "n=8") == [0, 0, 3]


def test_a_pattern_that_matches_everything_is_refused() -> None:
    with pytest.raises(PatternError, match="matches an empty line"):
        StepCounter("x*")
