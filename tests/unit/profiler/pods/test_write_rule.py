"""When a pod's figures are written again."""

import pytest

from alnair.model import usage
from alnair.profiler.pods.write_rule import (
    LARGE_AFTER,
    LEAST,
    PATIENCE,
    Noise,
    PodFigures,
    figures,
    is_news,
)

OLD = PodFigures(50.0, {}, {usage.GPU_UTIL: 50.0, usage.MEMORY_MIB: 1000.0, usage.CPU_CORES: 1.0})


def maxima(**changed: float) -> PodFigures:
    return PodFigures(50.0, {}, {**OLD.maximum, **changed})


@pytest.mark.parametrize(
    ("new", "age", "news"),
    [
        (OLD, 10 * PATIENCE, False),
        (maxima(gpu_util=51.0), LEAST, True),
        (maxima(gpu_util=51.0), LEAST - 1, False),
        (maxima(gpu_util=50.9), PATIENCE, False),
        (maxima(memory_mib=1049.0), PATIENCE, False),
        (maxima(memory_mib=1050.0), LEAST, True),
        (maxima(cpu_cores=1.06), LEAST, False),
        (maxima(cpu_cores=1.1), LEAST, True),
        (maxima(net_rx_mib_s=0.9), PATIENCE, False),
        (maxima(net_rx_mib_s=1.1), LEAST, True),
        (PodFigures(74.0, {}, OLD.maximum), LARGE_AFTER, False),
        (PodFigures(75.0, {}, OLD.maximum), LARGE_AFTER - 1, False),
        (PodFigures(75.0, {}, OLD.maximum), LARGE_AFTER, True),
        (PodFigures(45.0, {}, OLD.maximum), PATIENCE, True),
        (PodFigures(46.0, {}, OLD.maximum), PATIENCE, False),
    ],
)
def test_what_is_news(new: PodFigures, age: float, *, news: bool) -> None:
    assert is_news(OLD, new, age) is news


def test_figures_are_rounded_and_only_what_people_look_at() -> None:
    values = {
        usage.GPU_UTIL: (12.3456, 99.99),
        usage.MEMORY_MIB: (None, 123456.0),
        usage.CPU_PRESSURE: (0.5, 0.5),
    }
    assert figures(12.34, values) == PodFigures(
        12.3, {usage.GPU_UTIL: 12.35}, {usage.GPU_UTIL: 99.99, usage.MEMORY_MIB: 123500.0}
    )


def test_what_jumps_always_must_jump_further() -> None:
    noise = Noise()
    for value in (10.0, 60.0, 20.0, 70.0, 10.0, 80.0, 30.0):
        assert noise.take(value) == 0.0, "as long as nobody knows"
    level = noise.take(75.0)
    assert 80 <= level <= 120
    old, new = PodFigures(30.0), PodFigures(90.0)
    assert is_news(old, new, PATIENCE)
    assert not is_news(old, new, 10 * PATIENCE, level)


def test_one_step_is_no_noise() -> None:
    noise = Noise()
    levels = [noise.take(value) for value in (50.0, 51.0, 50.0, 51.0, 50.0, 51.0, 90.0, 91.0, 90.0)]
    assert max(levels) == 2.0
