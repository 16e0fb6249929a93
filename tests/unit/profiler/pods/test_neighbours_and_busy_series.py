"""Whose the driver's samples are, and who is beside whom."""

import numpy as np

from alnair.profiler.pods.busy_series import LENGTH, BusySeries
from alnair.profiler.pods.neighbours import Neighbours
from alnair.profiler.samples import GpuSample, ProcessSample


def samples(begin: float, count: int = 6) -> dict[str, GpuSample]:
    busy = tuple((begin + n / 6, float(n)) for n in range(count))
    return {"gpu": GpuSample(0.0, 50.0, busy=busy)}


def test_samples_are_kept_while_one_pod_has_the_gpu_alone() -> None:
    series = BusySeries()
    for second in range(400):
        series.take(samples(float(second)), {"gpu": "a"})
    times, values = series.of("a")["gpu"]
    assert len(times) == len(values) == LENGTH
    assert (np.diff(times) > 0).all()
    assert times[-1] == 399 + 5 / 6
    assert series.of("b") == {}
    series.take(samples(400.0), {})
    assert series.of("a") == {}, "another one has come"


def test_samples_of_the_pod_before_are_not_the_next_one_s() -> None:
    series = BusySeries()
    for second in range(5):
        series.take(samples(float(second)), {"gpu": "a"})
    series.take(samples(5.0), {"gpu": "b"})
    assert series.of("b") == {}
    series.take(samples(6.0), {"gpu": "b"})
    assert series.of("b")["gpu"][0][0] == 6.0


def test_samples_of_a_second_are_no_finer_ones() -> None:
    series = BusySeries()
    for second in range(9):
        series.take(samples(float(second), 1), {"gpu": "a"})
    assert series.of("a") == {}


def test_neighbours_are_pods_with_processes_on_the_same_gpu() -> None:
    neighbours = Neighbours()
    both = tuple(ProcessSample(pid) for pid in (1, 2, 3))
    places = {1: ("a", "main"), 2: ("b", "main"), 3: ("", "")}
    titles = {"a": "team/a", "b": "team/b"}
    neighbours.take(10.0, {"gpu": GpuSample(0.0, processes=both[:1])}, places, titles)
    assert neighbours.of("a") == (10.0, frozenset())
    for now in (11.0, 12.0):
        neighbours.take(now, {"gpu": GpuSample(0.0, processes=both)}, places, titles)
    assert neighbours.of("a") == (11.0, frozenset({"team/b"}))
    assert neighbours.of("b") == (11.0, frozenset({"team/a"}))
