"""The last ten minutes of a pod."""

import numpy as np

from alnair.profiler.pods.digest_table import METRICS
from alnair.profiler.pods.window import STATS, Windows


def put(windows: Windows, at: float, rows: list[int], value: float = np.nan) -> None:
    windows.put(at, rows, np.full((len(rows), len(METRICS)), at if np.isnan(value) else value))


def test_a_ring_has_the_newest_and_a_row_begins_with_its_first_sample() -> None:
    windows = Windows(rows=1, length=5)
    first = windows.add()
    for second in range(3):
        put(windows, second, [first])
    later = windows.add()
    for second in range(3, 7):
        put(windows, second, [first, later])
    at, values = windows.series(first)
    assert list(at) == [2, 3, 4, 5, 6]
    assert list(values[:, 0]) == [2, 3, 4, 5, 6]
    assert list(windows.series(later)[0]) == [3, 4, 5, 6]
    assert list(windows.newest(later, 2)[:, 0]) == [5, 6]


def test_a_gap_stays_one_and_a_freed_row_is_empty() -> None:
    windows = Windows(rows=1, length=5)
    row = windows.add()
    put(windows, 0, [row])
    put(windows, 1, [])
    put(windows, 2, [row])
    assert [bool(np.isnan(one)) for one in windows.series(row)[1][:, 0]] == [False, True, False]
    windows.remove(row)
    again = windows.add()
    assert again == row
    assert windows.series(again)[0].size == 0


def test_roll_ups_are_over_what_was_measured_of_each_row() -> None:
    windows = Windows(rows=2, length=5)
    rows = [windows.add() for _ in range(2)]
    empty = windows.add()
    for value in (9.0, 3.0, np.nan, 1.0, 2.0):
        values = np.full((2, len(METRICS)), value)
        values[1] *= 10
        windows.put(value, rows, values)
    found = windows.roll_ups([rows[1], empty, rows[0]], METRICS[1:3], 4)
    assert found.shape == (3, 2, len(STATS))
    assert found[2].tolist() == [[2.0, 3.0, 3.0]] * 2
    assert found[0].tolist() == [[20.0, 30.0, 30.0]] * 2
    assert np.isnan(found[1]).all()
    assert windows.roll_ups([], METRICS[:1], 4).shape == (0, 1, len(STATS))
