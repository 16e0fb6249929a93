"""Families as text, beside what the library's own writer makes of them."""

import math
from collections.abc import Iterable, Iterator

import pytest
from prometheus_client import exposition
from prometheus_client.metrics_core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.openmetrics import exposition as open_metrics
from prometheus_client.registry import Collector

from alnair.scheduler.metric_counters import Histogram
from alnair.serving.exposition import counter, gauge, histogram, of_this_process
from alnair.serving.written_families import written

VALUES = [0, 1, -1.5, 0.1, 1e-9, 999_999, 1_000_000, 1.5e9, 1 << 60, math.inf, -math.inf, math.nan]


class Families(Collector):
    """What the library reads."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterator[Metric]:
        return iter(self._families)


def page() -> list[Metric]:
    """Families of all kinds, with labels that need to be escaped, and some that are shared."""
    shared = {"pod": 'a"b', "namespace": "back\\slash\nand line"}
    times = Histogram((0.5, 1.0, 10.0))
    for seconds in (0.1, 0.7, 100.0):
        times.observe(seconds)
    return [
        counter("a_total", "With a \\ and a\nline.", [(shared, 1), ({}, 2.5)]),
        gauge("b", "Plain.", [(shared, value) for value in VALUES]),
        gauge("c", "Of none.", []),
        gauge("d", "Of others.", (({"z": str(n), "a": "ü"}, n) for n in range(3))),
        histogram("e", "Times.", [(shared, times)]),
        *of_this_process(),
    ]


def test_both_formats_are_what_the_library_writes() -> None:
    families = page()
    assert written(families) == exposition.generate_latest(Families(families))
    found = written(families, open_metrics=True)
    assert found == open_metrics.generate_latest(Families(families))


def test_a_unit_is_told_in_openmetrics() -> None:
    family = Metric("room_bytes", "Room.", "gauge", "bytes")
    family.add_sample("room_bytes", {}, 1)
    assert b"# UNIT room_bytes bytes\n" in written([family], open_metrics=True)
    assert b"# UNIT" not in written([family])


def test_what_it_does_not_know_is_refused_and_not_written_wrong() -> None:
    with pytest.raises(ValueError, match="of type info are not written here"):
        written([InfoMetricFamily("a", "Facts.", {"b": "c"})])
    timed = GaugeMetricFamily("a", "Now.", labels=["b"])
    timed.add_metric(["c"], 1.0, timestamp=5)
    with pytest.raises(ValueError, match="samples with a time of their own"):
        written([timed])
