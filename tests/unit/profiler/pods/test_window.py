"""The last ten minutes of a pod."""

import numpy as np

from alnair.profiler.pods.digest_table import METRICS
from alnair.profiler.pods.window import Windows


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
