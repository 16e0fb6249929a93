"""What was noted of components part by part comes together."""

from pathlib import Path

from alnair.doctor.cluster.chart_rights import Right
from kit import rights
from record_requests import parts

GET = ("agent", Right("get", "nodes"))
PATCH = ("scheduler", Right("patch", "pods/status"))


def test_what_is_noted_is_added_to_what_was_noted(tmp_path: Path) -> None:
    note = tmp_path / "a.part"
    rights.note([GET], note)
    rights.note([PATCH], note)
    assert rights.read_all([note]) == {GET, PATCH}


def test_a_request_anywhere_stands_for_one_in_our_namespace(tmp_path: Path) -> None:
    notes = [tmp_path / "a.tsv", tmp_path / "b.tsv"]
    rights.note([("agent", Right("get", "nodes", "alnair-system"))], notes[0])
    rights.note([GET], notes[1])
    written = tmp_path / "all.tsv"
    rights.write(rights.read_all(notes), written)
    assert rights.read_all([written]) == {GET}


def test_each_test_of_a_real_node_is_in_one_part() -> None:
    folder = Path(rights.ROOT / "tests/integration/real_node")
    listed = [one for tests in parts().values() for one in tests if one.parent == folder]
    assert sorted(listed) == sorted(folder.glob("test_*.py"))
