"""Records of earlier versions are read, wherever their writer was killed; nothing else is."""

from pathlib import Path

import msgspec
import pytest

from alnair.live.recording.record_file import RecordError, load
from alnair.live.recording.record_lines import PodRecord
from alnair.live.recording.recorded_cluster import Head, Line


def pod(name: str) -> PodRecord:
    return PodRecord(uid=name, namespace="ns", name=name, job=f"Pod/{name}", created=5.0)


LINES = [
    Line(t=10.0, head=Head(cluster="c")),
    Line(t=11.0, pod=pod("a")),
    Line(t=12.0, util=("a", 50.0)),
    Line(t=13.0, gone_pod="a"),
]
DATA = b"".join(msgspec.json.encode(line) + b"\n" for line in LINES)


def test_wherever_a_writer_was_killed_all_whole_lines_count(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    ends = [number + 1 for number, byte in enumerate(DATA) if byte == ord("\n")]
    for cut in range(len(DATA) + 1):
        path.write_bytes(DATA[:cut])
        if whole := sum(end <= cut for end in ends):
            assert load(path).last == LINES[whole - 1].t
        else:
            with pytest.raises(RecordError, match=r"r\.jsonl: this is not a record"):
                load(path)
    assert load(path).pods["a"].gone == 13.0


@pytest.mark.parametrize("content", [b"", b"my thesis", b"my thesis\n", b'{"t":1.0}\n', b"{}\n"])
def test_what_is_no_record_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "thesis.txt"
    path.write_bytes(content)
    with pytest.raises(RecordError, match=r"thesis\.txt"):
        load(path)


def test_a_damaged_line_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(DATA.replace(b'"t":12.0', b'"t":oops'))
    with pytest.raises(RecordError, match=r"r\.jsonl, line 3"):
        load(path)


def test_a_record_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="check the path"):
        load(tmp_path / "none.jsonl")
