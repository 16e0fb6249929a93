"""Bytes of hostile programs as clean lines."""

from hypothesis import given
from hypothesis import strategies as st

from alnair.profiler.logs.lines import MOST_CHARACTERS, LineReader, clean


@given(st.binary(max_size=3000), st.integers(1, 50))
def test_lines_are_clean_short_and_the_same_however_the_bytes_came(data: bytes, size: int) -> None:
    whole, pieces = LineReader(), LineReader()
    lines = [*whole.feed(data), *whole.close()]
    cut = [line for at in range(0, len(data), size) for line in pieces.feed(data[at : at + size])]
    assert [*cut, *pieces.close()] == lines
    assert all(0 < len(line) <= MOST_CHARACTERS for line in lines)
    assert not any((c < " " and c != "\t") or c in "\x7f\x1b\x9b" for line in lines for c in line)


def test_each_state_of_a_bar_is_a_line() -> None:
    assert list(LineReader().feed(b"\r 1%\r 2%\r\n")) == ["1%", "2%"]


def test_colours_and_cursor_movements_are_no_text() -> None:
    assert clean("\x1b[1;31mstep\x1b[0m 3\x1b[A\x1b]0;title\x07\x08") == "step 3"
