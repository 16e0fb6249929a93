"""A table of samples is read whole, or refused with every line and column that is wrong."""

import math

import pytest

from alnair.traces.csv_table import TableError
from alnair.traces.series_table import read_series


def test_samples_are_read_in_any_unit_and_with_other_columns() -> None:
    text = "host,value,time_s\na,-3.5,1700000000.25\nb,8e10,1700000001\n".splitlines()
    found = read_series(text, "f")
    assert found.times == [1700000000.25, 1700000001]
    assert found.values == [-3.5, 8e10]


@pytest.mark.parametrize("missed", ["", " ", "nan", "NaN"])
def test_a_missed_sample_is_not_a_number(missed: str) -> None:
    found = read_series(["time_s,value", f"1,{missed}", "2,5"], "f")
    assert math.isnan(found.values[0])
    assert found.values[1] == 5


def test_everything_that_is_wrong_is_told_at_once() -> None:
    text = ["time_s,value", "1,2", "x,3", "0.5,4", "2,much", "3,inf"]
    with pytest.raises(TableError) as caught:
        read_series(text, "f.csv")
    assert str(caught.value).splitlines() == [
        "f.csv, line 3, column 'time_s': 'x' is not a number: write digits, as 3600 or 0.5",
        "f.csv, line 4, column 'time_s': 0.5 is before 1 above it: sort the lines",
        "f.csv, line 5, column 'value': 'much' is not a number: write digits, as 3600 or 0.5",
        "f.csv, line 6, column 'value': 'inf' is not a number: write digits, as 3600 or 0.5",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ([], "the file is empty: expected a header with time_s,value"),
        (["time,value", "1,2"], "column 'time_s': the column is missing"),
        (["time_s,value"], "there is a header, but nothing below it"),
        (["time_s,value", "1"], "line 2: 1 value for 2 columns"),
    ],
)
def test_what_is_no_such_table_is_refused(text: list[str], said: str) -> None:
    with pytest.raises(TableError, match=said):
        read_series(text, "f")
