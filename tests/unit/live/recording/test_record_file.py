"""Records survive whoever writes them, and refuse what is not one."""

from pathlib import Path

import pytest

from alnair.live.recording.record_file import RecordError, RecordFile, load
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


def written(path: Path) -> bytes:
    with RecordFile(path) as file:
        file.append(LINES)
    return path.read_bytes()


def test_wherever_a_writer_is_killed_all_whole_lines_count_and_the_next_one_goes_on(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.jsonl"
    data = written(path)
    ends = [number + 1 for number, byte in enumerate(data) if byte == ord("\n")]
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        whole = sum(end <= cut for end in ends)
        if whole:
            assert load(path).last == LINES[whole - 1].t
        with RecordFile(path) as file:
            known = file.begin()
            assert known.last == (LINES[whole - 1].t if whole else 0.0)
            file.append([*LINES[:1], Line(t=99.0, pod=pod("b"))] if not whole else LINES[1:2])
        assert load(path).pods.keys() == ({"b"} if not whole else {"a"})


def test_only_one_writes_at_a_time_and_others_may_read(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with RecordFile(path) as file:
        file.append(LINES)
        assert load(path).last == 13.0
        with pytest.raises(RecordError, match="somebody records into it now"):
            RecordFile(path)
    with RecordFile(path) as file:
        assert file.begin().pods["a"].gone == 13.0


@pytest.mark.parametrize("content", [b"my thesis", b"my thesis\n", b'{"t":1.0}\n', b"{}\n"])
def test_what_is_no_record_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "thesis.txt"
    path.write_bytes(content)
    with RecordFile(path) as file, pytest.raises(RecordError, match=r"thesis\.txt"):
        file.begin()
    assert path.read_bytes() == content


def test_a_damaged_line_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(written(path).replace(b'"t":12.0', b'"t":oops'))
    with pytest.raises(RecordError, match=r"r\.jsonl, line 3"):
        load(path)


def test_a_full_disk_leaves_no_part_of_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.jsonl"
    with RecordFile(path) as file:
        file.append(LINES[:2])
        before = path.read_bytes()
        write, calls = __import__("os").write, []

        def full(fd: int, data: bytes) -> int:
            calls.append(fd)
            if len(calls) > 1:
                raise OSError(28, "No space left on device")
            return int(write(fd, data[:7]))

        monkeypatch.setattr("os.write", full)
        with pytest.raises(OSError, match="No space"):
            file.append(LINES[2:])
        assert path.read_bytes() == before


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="check the path"):
        RecordFile(tmp_path / "none" / "r.jsonl")
    with pytest.raises(RecordError, match="check the path"):
        load(tmp_path / "none.jsonl")
