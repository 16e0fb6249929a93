"""`alnair report scheduling` on files: what it refuses, and that it says why."""

import json
import sys
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from alnair.cli import main
from alnair.history import history_file
from alnair.live.recording.record_lines import NodeRecord, PodRecord
from alnair.live.recording.recorded_cluster import Head, Line
from kit.histories import history, job, node, stay


def report(*arguments: object) -> Result:
    return CliRunner().invoke(
        main.build(["report"]), ["report", "scheduling", *map(str, arguments)]
    )


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A record of 100 seconds, with two pods."""
    path = tmp_path / "record.jsonl"
    pods = [
        PodRecord(uid=n, namespace=n, name=n, job=f"Pod/{n}", created=1e9, node="n", bound=1e9)
        for n in ("a", "b")
    ]
    lines = [
        Line(t=1e9, head=Head(cluster="c")),
        Line(t=1e9, node=NodeRecord(name="n", created=1e9, gpu_count=1)),
        *(Line(t=1e9, pod=pod) for pod in pods),
        Line(t=1e9 + 100),
    ]
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return path


def test_a_record_is_reported_on_with_its_part_that_was_asked_for(record: Path) -> None:
    done = report("--history", record, "--since", "25s", "--namespace", "a", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout.splitlines()[-1])["runs"]["record"]
    assert (found["seconds"], found["jobs"]["total"]) == (25, 1)


def test_histories_are_compared(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # plots take most of the time
    for name in ("plots", "drawing"):
        monkeypatch.delitem(sys.modules, f"alnair.history.report.{name}", raising=False)
    other = tmp_path / "record.history.gz"
    history_file.save(history(50.0, [node("n")], job("j", 0, [stay("n", 0)])), other)
    done = report("--history", record, "--history", other, "--report", tmp_path / "both")
    assert done.exit_code == 0, done.output
    assert "record-2 / record" in done.output
    assert (tmp_path / "both" / "index.html").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--record", "x", "--json"), "records and reports nothing"),
        (("--for", "3"), "it is the time of --record"),
        (("--record", "RECORD"), "a record of an earlier version, which --history still reads"),
        (("--record", "mysql://host/x"), "mysql cannot keep a history"),
        (("--history", "RECORD", "--name", "x"), "leave the cluster away"),
        (("--history", "RECORD", "--since", "soon"), "is not a time: write 90s"),
        (("--history", "RECORD", "--since", "2030-01-01"), "that is after the end, 2001-09-09"),
        (("--history", "none.jsonl"), "none.jsonl: cannot be read"),
        (("--history", "HISTORY", "--since", "1h"), "is no record of a cluster"),
        (("--history", "RECORD", "--report", "FULL"), "there is something else than a report"),
    ],
)
def test_wrong_usage_and_wrong_files_end_with_2_and_say_why(
    record: Path, tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("years of work")
    history_file.save(history(50.0, [node("n")]), tmp_path / "h.gz")
    places = {"RECORD": record, "HISTORY": tmp_path / "h.gz", "FULL": tmp_path / "full"}
    done = report(*(places.get(word, word) for word in arguments))
    assert done.exit_code == 2, done.output
    assert told in " ".join(done.output.replace("│", " ").split())
    assert not Path("x").exists()
