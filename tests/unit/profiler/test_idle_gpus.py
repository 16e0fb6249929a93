"""GPUs that are held and idle."""

import pytest

from alnair.profiler.idle_gpus import idle_seconds, is_wasted

Samples = list[tuple[float, float | None]]


@pytest.mark.parametrize(
    ("samples", "idle"),
    [
        ([], None),
        ([(0, None)], None),
        ([(0, 0.0), (10, 0.0)], 100.0),
        ([(0, 0.0), (10, 50.0)], 0.0),
        ([(0, 50.0), (10, 1.0), (20, 0.0)], 90.0),
        ([(0, 0.0), (10, None), (20, 0.0)], 80.0),
    ],
)
def test_idleness_counts_from_the_last_work_or_gap(samples: Samples, idle: float | None) -> None:
    assert idle_seconds(samples, now=100) == idle


def test_a_gpu_is_wasted_after_the_minutes_that_were_asked() -> None:
    samples: Samples = [(0, 90.0), (60, 0.0)]
    assert not is_wasted(samples, now=60 + 599, minutes=10)
    assert is_wasted(samples, now=60 + 600, minutes=10)
    assert not is_wasted([], now=9999, minutes=10)
