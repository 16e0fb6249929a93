"""Times at the beginning of lines."""

import pytest

from alnair.profiler.logs.stamps import split

NOON = 1769860800.0


@pytest.mark.parametrize(
    ("line", "at", "rank", "rest"),
    [
        ("2026-01-31T12:00:00.25Z step 3", NOON + 0.25, None, "step 3"),
        ("2026-01-31T13:00:00+01:00 step 3", NOON, None, "step 3"),
        ("2026-01-31 12:00:00,250 - INFO", NOON + 0.25, None, "- INFO"),
        ("[2026/01/31 12:00:00] x", NOON, None, "x"),
        ("[1,3]<stdout>:2026-01-31 12:00:00 x", NOON, 3, "x"),
        ("[rank2]:x", None, 2, "x"),
        ("2026-13-41 99:00:00 x", None, None, "x"),
        ("0000-01-01 00:00:00 x", None, None, "x"),
        ("20260131 x", None, None, "20260131 x"),
    ],
)
def test_a_time_and_a_rank_are_taken_off(
    line: str, at: float | None, rank: int | None, rest: str
) -> None:
    assert split(line) == (at, rank, rest)


def test_times_without_a_year_keep_their_distance() -> None:
    first, second = (split(f"I0131 12:00:0{s}.500000 17 a.cc:3] x")[0] for s in (1, 3))
    assert first is not None
    assert second == first + 2


def test_the_time_in_a_line_of_json_leaves_the_line_whole() -> None:
    line = '{"level": "info", "ts": "2026-01-31T12:00:00Z", "step": 3}'
    assert split(line) == (NOON, None, line)
