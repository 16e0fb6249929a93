"""The iteration time by the driver's samples: right, or nothing."""

import gzip
import itertools
import json
import statistics
from pathlib import Path

import numpy as np
import pytest

from alnair.profiler.even_grid import Refusal, Values
from alnair.profiler.gpu_iteration import FineCycle, iteration_of_gpus

RECORDED = sorted((Path(__file__).parent / "trainings").glob("*.json.gz"))
STEP = 1 / 6


def driver(times: Values, worked: Values, phase: float = 0.0) -> tuple[Values, Values]:
    """Samples of the driver, from a counter of work: whole percents, six a second."""
    ends = np.arange(times[0] + phase * STEP, times[-1], STEP)
    percents = np.diff(np.interp(ends, times, worked)) / STEP * 100
    return ends[1:], np.clip(np.round(percents), 0, 100)


def steps(period: float, duty: float, spread: float = 0.01, seconds: float = 120.0) -> Values:
    """A GPU that works for a part of each step, and rests for the others."""
    rng = np.random.default_rng(int(1000 * period))
    ends = np.cumsum(period * np.maximum(0.2, rng.normal(1, spread, int(seconds / period))))
    begins = np.concatenate([[0.0], ends[:-1]])
    times = np.stack([begins, begins + duty * (ends - begins)]).T.ravel()
    worked = np.cumsum(np.stack([np.zeros(len(ends)), duty * (ends - begins)]).T.ravel())
    return np.stack(driver(times, worked))


def recorded(path: Path) -> tuple[float, Values, Values]:
    run = json.loads(gzip.decompress(path.read_bytes()))
    marked = sorted([(at, True) for at in run["steps"]] + [(at, False) for at in run["breaks"]])
    pairs = itertools.pairwise(marked)
    lengths = [later[0] - one[0] for one, later in pairs if one[1] and later[1]]
    times, cores = np.array(run["times"]), np.array(run["cpu_cores"])
    worked = np.concatenate([[0.0], np.cumsum(cores[1:] * np.diff(times))])
    return statistics.median(lengths), times, worked


def test_of_real_trainings_most_are_told_within_two_percent_and_none_wrong() -> None:
    told = 0
    for path in RECORDED:
        logged, times, worked = recorded(path)
        found = iteration_of_gpus({"gpu": driver(times, worked)})
        if isinstance(found, FineCycle):
            assert found.seconds == pytest.approx(logged, rel=0.02), path.name
            told += 1
    assert told >= 6


@pytest.mark.parametrize("period", [1.0, 1.7, 4.0])
def test_an_iteration_of_a_second_or_more_is_told(period: float) -> None:
    found = iteration_of_gpus({"gpu": tuple(steps(period, 0.6))})
    assert isinstance(found, FineCycle)
    assert found.seconds == pytest.approx(period, rel=0.02)


@pytest.mark.parametrize("period", [0.05, 0.1, 0.17, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7])
@pytest.mark.parametrize("duty", [0.3, 0.6, 0.9])
def test_what_is_shorter_than_a_few_samples_is_not_told_and_never_wrong(
    period: float, duty: float
) -> None:
    assert isinstance(iteration_of_gpus({"gpu": tuple(steps(period, duty))}), Refusal)


def test_checkpoints_between_short_steps_are_no_iterations() -> None:
    assert isinstance(iteration_of_gpus({"gpu": tuple(steps(9.0, 0.95))}), Refusal)


def test_the_clearest_of_several_gpus_counts() -> None:
    clear = tuple(steps(2.0, 0.5))
    noise = clear[0], np.random.default_rng(1).uniform(0, 100, len(clear[0]))
    found = iteration_of_gpus({"a": noise, "b": clear})
    assert isinstance(found, FineCycle)
    assert found.seconds == pytest.approx(2.0, rel=0.02)


def test_without_a_gpu_of_its_own_it_says_so() -> None:
    assert iteration_of_gpus({}) == Refusal("no GPU is the pod's alone")
    few = np.arange(5.0)
    found = iteration_of_gpus({"gpu": (few, few)})
    assert isinstance(found, Refusal)
    assert "too few" in found.reason
    idle = np.arange(100.0)
    found = iteration_of_gpus({"gpu": (idle, idle % 5)})
    assert isinstance(found, Refusal)
    assert "too little" in found.reason
