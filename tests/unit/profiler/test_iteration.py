"""The iteration time that samples tell is the one that real trainings logged."""

import gzip
import itertools
import json
import statistics
from pathlib import Path

import numpy as np
import pytest

from alnair.profiler.even_grid import Refusal
from alnair.profiler.iteration import Iteration, iteration_time

RECORDED = sorted((Path(__file__).parent / "trainings").glob("*.json.gz"))
Metrics = dict[str, tuple[np.ndarray, np.ndarray]]


def read(path: Path) -> tuple[float, Metrics]:
    """The median time from step to step where nothing came between, and what was sampled."""
    run = json.loads(gzip.decompress(path.read_bytes()))
    marked = sorted([(at, True) for at in run["steps"]] + [(at, False) for at in run["breaks"]])
    pairs = itertools.pairwise(marked)
    lengths = [later[0] - one[0] for one, later in pairs if one[1] and later[1]]
    times = np.array(run["times"])
    metrics = {name: (times, np.array(run[name])) for name in ("cpu_cores", "memory_mib")}
    return statistics.median(lengths), metrics


def told(metrics: Metrics) -> Iteration:
    found = iteration_time(metrics)
    assert isinstance(found, Iteration)
    return found


def test_there_are_trainings_of_many_shapes() -> None:
    assert len(RECORDED) >= 8


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.partition(".")[0])
def test_samples_tell_the_step_time_that_a_training_logged(path: Path) -> None:
    logged, metrics = read(path)
    assert told(metrics).seconds == pytest.approx(logged, rel=0.02)


def test_the_clearest_metric_counts_and_the_others_are_named() -> None:
    times = np.arange(600.0)
    noise = np.random.default_rng(1).normal(0, 1, (4, 600))
    clear = np.where(times % 10 < 6, 90, 10)
    found = told(
        {
            "memory_mib": (times, clear + 40 * noise[0]),
            "gpu_util": (times, clear + noise[1]),
            "power_w": (times, 5 * clear + 5 * noise[2]),
            "net_rx_mib_s": (times, np.where(times % 37 < 9, 50, 0) + 8 * noise[3]),
        }
    )
    assert found.metric in {"gpu_util", "power_w"}
    assert found.seconds == pytest.approx(10, rel=0.01)
    assert "memory_mib" in found.also
    assert list(found.differ) == ["net_rx_mib_s"]


def test_without_a_cycle_every_metric_says_why() -> None:
    times = np.arange(100.0)
    found = iteration_time({"a": (times, np.ones(100)), "b": (times[:3], np.ones(3))})
    assert isinstance(found, Refusal)
    assert found.reason == (
        "a: it is flat: all values are the same; b: 3 samples are too few: 16 at least"
    )
    assert iteration_time({}) == Refusal("there is no metric")
