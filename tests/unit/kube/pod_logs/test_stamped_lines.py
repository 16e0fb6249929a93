"""Time stamps of the kubelet."""

import pytest

from alnair.kube.pod_logs.stamped_lines import LogLine, read

NOON = 1769860800 * 10**9


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b"2026-01-31T12:00:00.000000001Z x y", LogLine(NOON + 1, b"x y")),
        (b"2026-01-31T13:00:00.5+01:00 x", LogLine(NOON + 500_000_000, b"x")),
        (b"2026-01-31T12:00:00Z ", LogLine(NOON, b"")),
        (b"2026-01-31T12:00:00Z", LogLine(NOON, b"")),
        (b"no time", None),
        (b"", None),
    ],
)
def test_a_line_has_the_time_of_its_beginning(line: bytes, found: LogLine | None) -> None:
    assert read(line) == found
