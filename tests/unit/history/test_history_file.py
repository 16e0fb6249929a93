"""Histories go to disk and come back, or it is told what is wrong with the file."""

import gzip
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from alnair.history import history_file
from alnair.history.history import History, PairRate
from alnair.history.history_file import HistoryFileError
from kit.histories import any_history, history, job, node, stay


def small() -> History:
    found = history(10.0, [node("a", 1)], job("j", 0, [stay("a", 1, 5)], finished=5))
    found.pairs.append(PairRate(first="j", second="j", seconds=1, first_rate=1.0, second_rate=0.5))
    found.source, found.decisions, found.decision_seconds = "a test", 3, 0.5
    return found


@pytest.mark.parametrize("name", ["h.jsonl", "h.jsonl.gz"])
def test_what_is_saved_comes_back_and_equal_histories_are_equal_bytes(
    tmp_path: Path, name: str
) -> None:
    history_file.save(small(), tmp_path / name)
    before = (tmp_path / name).read_bytes()
    assert history_file.load(tmp_path / name) == small()
    history_file.save(small(), tmp_path / name)
    assert (tmp_path / name).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [name]


@given(any_history())
@settings(max_examples=20, deadline=None)
def test_any_history_comes_back(tmp_path_factory: pytest.TempPathFactory, found: History) -> None:
    path = tmp_path_factory.mktemp("histories") / "h"
    history_file.save(found, path)
    assert history_file.load(path) == found


def lines() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "h"
        history_file.save(small(), path)
        return path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "line 1: "),
        (b'{"format":"other"}\n', "line 1: "),
        (b"\x1f\x8b\x08\x00", "the compressed file is damaged"),
        (b"".join(lines()[:-1]), "line 5: it ends too early"),
        (b"".join([*lines()[:2], lines()[-1]]), "line 3: lines are missing or too many"),
        (b"".join([*lines(), lines()[1]]), "line 6: lines are missing or too many"),
        (b"".join([*lines()[:2], *lines()[1:]]), "line 3: 'a' is there twice"),
        (b"".join([*lines()[:2], b'{"pood":1}\n']), "line 3: Object contains unknown field"),
        (b"".join(lines()).replace(b'["j-0"]', b'["j-9"]'), "has a pod 'j-9' that is not there"),
        (b"".join(lines()).replace(b'"a/0","milli"', b'"b","milli"'), "node a has no GPU b"),
        (b"".join(lines()).replace(b'"end":5,', b'"end":0,'), "a stay ends before it begins"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "h"
    path.write_bytes(content)
    with pytest.raises(HistoryFileError, match="h") as refusal:
        history_file.load(path)
    assert told in str(refusal.value)
    assert str(path) in str(refusal.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(HistoryFileError, match="check the path"):
        history_file.load(tmp_path / "none")


def test_a_damaged_compressed_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "h.gz"
    path.write_bytes(gzip.compress(b"".join(lines()), mtime=0)[:-9])
    with pytest.raises(HistoryFileError, match="damaged"):
        history_file.load(path)
