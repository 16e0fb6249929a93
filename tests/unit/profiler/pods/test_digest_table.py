"""Digests of many series at once, beside what NumPy says of all their values."""

import msgspec
import numpy as np
import pytest

from alnair.model import usage
from alnair.profiler.pods.digest_table import BINS, METRICS, DigestTable, TableState

WIDTH = len(METRICS)


def line(**figures: float) -> list[float]:
    return [figures.get(metric, np.nan) for metric in METRICS]


@pytest.mark.parametrize("seed", range(5))
def test_digests_are_those_of_all_values(seed: int) -> None:
    random = np.random.default_rng(seed)
    table = DigestTable(2)
    rows = [table.add() for _ in range(5)]
    cores = random.lognormal(0, 2, (500, 5))
    percent = random.beta(0.4, 0.6, (500, 5)) * 100
    for one, two in zip(cores, percent, strict=True):
        lines = [line(cpu_cores=a, gpu_util=b) for a, b in zip(one, two, strict=True)]
        table.update(rows, np.array(lines), 1.0)
    for n, row in enumerate(rows):
        found = table.digests(row)
        assert set(found) == {usage.CPU_CORES, usage.GPU_UTIL}
        for metric, values in ((usage.CPU_CORES, cores[:, n]), (usage.GPU_UTIL, percent[:, n])):
            digest = found[metric]
            assert digest.mean == pytest.approx(values.mean(), rel=1e-6)
            assert digest.max == pytest.approx(values.max(), abs=1e-6)
            assert digest.last == pytest.approx(values[-1], abs=1e-6)
            assert digest.seconds == 500
        exact = np.percentile(cores[:, n], 95)
        assert found[usage.CPU_CORES].p95 == pytest.approx(exact, rel=0.13)
        exact = np.percentile(percent[:, n], 95)
        assert found[usage.GPU_UTIL].p95 == pytest.approx(exact, abs=1.0)


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.5, 99.99, 100.0, 1e12])
def test_a_steady_value_is_its_own_digest(value: float) -> None:
    table = DigestTable()
    row = table.add()
    for _ in range(10):
        table.update([row], np.array([line(memory_mib=value, gpu_util=min(value, 100))]), 2.0)
    digest = table.digests(row, last=False)[usage.MEMORY_MIB]
    assert (digest.mean, digest.max) == pytest.approx((value, value), abs=1e-6)
    assert 0 <= digest.p95 <= digest.max
    assert (digest.seconds, digest.last) == (20.0, None)
    assert table.digests(row)[usage.GPU_UTIL].p95 == pytest.approx(min(value, 100), abs=0.51)


def test_what_is_not_measured_is_absent_and_a_mean_is_over_time() -> None:
    table = DigestTable()
    row = table.add()
    table.update([row], np.array([line(cpu_cores=1.0)]), 1.0)
    table.update([row], np.array([line(cpu_cores=4.0, memory_mib=3.0)]), 3.0)
    table.update([row], np.array([line(memory_mib=3.0)]), 1.0)
    found = table.digests(row)
    assert found[usage.CPU_CORES].mean == 3.25
    assert (found[usage.CPU_CORES].seconds, found[usage.CPU_CORES].last) == (4.0, None)
    assert table.values(row) == {usage.CPU_CORES: (None, 4.0), usage.MEMORY_MIB: (3.0, 3.0)}
    table.silence(row)
    assert table.values(row)[usage.MEMORY_MIB] == (None, 3.0)


def test_a_row_that_was_freed_begins_empty() -> None:
    table = DigestTable(1)
    row = table.add()
    table.update([row], np.array([line(cpu_cores=1.0)]), 1.0)
    table.remove(row)
    assert table.add() == row
    assert table.digests(row) == {}


def test_rows_go_on_after_they_were_written_down() -> None:
    table = DigestTable()
    rows = [table.add() for _ in range(3)]
    for value in (1.0, 2.0, 3.0):
        table.update(rows, np.array([line(cpu_cores=value * n) for n in (1, 2, 3)]), 1.0)
    state = msgspec.msgpack.decode(msgspec.msgpack.encode(table.state(rows[1:])), type=TableState)
    again = DigestTable(1)
    restored = again.restore(state)
    for old, new in zip(rows[1:], restored, strict=True):
        assert again.digests(new) == table.digests(old, last=False)
        for one, at in ((table, old), (again, new)):
            one.update([at], np.array([line(cpu_cores=100.0)]), 1.0)
        assert again.digests(new) == table.digests(old)


def test_metrics_of_another_version_are_left_out() -> None:
    table = DigestTable()
    row = table.add()
    table.update([row], np.array([line(cpu_cores=1.0, memory_mib=2.0)]), 1.0)
    state = table.state([row])
    renamed = ["of_old" if one == usage.CPU_CORES else one for one in METRICS]
    (new,) = DigestTable().restore(msgspec.structs.replace(state, metrics=renamed))
    other = DigestTable()
    (new,) = other.restore(msgspec.structs.replace(state, metrics=renamed))
    assert set(other.digests(new)) == {usage.MEMORY_MIB}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bins": 7}, "histograms have 7 steps"),
        ({"sums": b"1234"}, "buffer size"),
        ({"at": np.array([WIDTH * BINS]).tobytes()}, "beyond the histograms"),
    ],
)
def test_what_is_damaged_is_refused(change: dict[str, object], message: str) -> None:
    table = DigestTable()
    row = table.add()
    table.update([row], np.array([line(cpu_cores=1.0)]), 1.0)
    state = msgspec.structs.replace(table.state([row]), **change)
    with pytest.raises(ValueError, match=message):
        table.restore(state)
