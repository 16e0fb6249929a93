"""A fresh clone has what was compiled from the same sources, and nothing else."""

from pathlib import Path

import pytest

from alnair.local.real_node.earlier_builds import KEPT, EarlierBuilds


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = tmp_path / "native" / "source.c"
    source.parent.mkdir()
    source.write_text("one")
    return source


def builds(source: Path, name: str) -> EarlierBuilds:
    return EarlierBuilds(source.parents[1] / "copies", source.parent, source.parents[1] / name)


def build(source: Path, name: str) -> None:
    folder = source.parents[1] / name
    (folder / "clients").mkdir(parents=True)
    (folder / "clients" / "program").touch()
    (folder / "library").write_text(source.read_text())
    builds(source, name).keep()


def test_a_copy_is_of_the_same_sources_newer_than_they_and_without_programs(
    tmp_path: Path, source: Path
) -> None:
    build(source, "first")
    source.write_text("one")  # as git checks it out
    builds(source, "second").fetch()
    assert [path.name for path in (tmp_path / "second").iterdir()] == ["library"]
    library = tmp_path / "second" / "library"
    assert library.read_text() == "one"
    assert library.stat().st_mtime >= source.stat().st_mtime


def test_other_sources_have_no_copy_and_what_is_there_is_left_alone(
    tmp_path: Path, source: Path
) -> None:
    build(source, "first")
    (tmp_path / "first" / "library").write_text("made here")
    builds(source, "first").fetch()
    assert (tmp_path / "first" / "library").read_text() == "made here"
    source.write_text("two")
    builds(source, "second").fetch()
    assert not (tmp_path / "second").exists()


def test_a_fetch_that_was_killed_is_made_anew(tmp_path: Path, source: Path) -> None:
    build(source, "first")
    (tmp_path / "second.new").mkdir()
    (tmp_path / "second.new" / "half").touch()
    builds(source, "second").fetch()
    assert [path.name for path in (tmp_path / "second").iterdir()] == ["library"]


def test_the_last_few_are_kept(tmp_path: Path, source: Path) -> None:
    for i in range(KEPT + 2):
        source.write_text(f"version {i}")
        build(source, f"build-{i}")
    assert len(list((tmp_path / "copies").iterdir())) == KEPT


def test_a_copy_that_another_clone_removes_meanwhile_is_left_alone(
    tmp_path: Path, source: Path
) -> None:
    for i in range(KEPT + 1):
        source.write_text(f"version {i}")
        if i == KEPT:  # listed, and not there: as one that goes after it was listed
            (tmp_path / "copies" / "gone").symlink_to(tmp_path / "nowhere")
        build(source, f"build-{i}")
    builds(source, "again").fetch()
    assert (tmp_path / "again" / "library").read_text() == source.read_text()
