"""A fresh clone has the libraries that were compiled from the same sources, and no others."""

from pathlib import Path

import pytest

from native.built_before import KEPT, Copies


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ALNAIR_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "source.c"
    source.write_text("one")
    return source


def build(folder: Path, source: Path) -> None:
    (folder / "clients").mkdir(parents=True)
    (folder / "clients" / "program").touch()
    (folder / "library").write_text(source.read_text())
    (folder / "link").symlink_to("library")
    Copies(folder, [source]).keep()


def test_a_copy_is_of_the_same_sources_newer_than_they_and_without_programs(
    tmp_path: Path, source: Path
) -> None:
    build(tmp_path / "first", source)
    source.write_text("one")  # as git checks it out
    Copies(tmp_path / "second", [source]).fetch()
    assert {path.name for path in (tmp_path / "second").iterdir()} == {"library", "link"}
    built = tmp_path / "second" / "library"
    assert built.read_text() == "one"
    assert built.stat().st_mtime >= source.stat().st_mtime


def test_other_sources_have_no_copy_and_what_is_there_is_left_alone(
    tmp_path: Path, source: Path
) -> None:
    build(tmp_path / "first", source)
    (tmp_path / "first" / "library").write_text("made here")
    Copies(tmp_path / "first", [source]).fetch()
    assert (tmp_path / "first" / "library").read_text() == "made here"
    source.write_text("two")
    Copies(tmp_path / "second", [source]).fetch()
    assert not (tmp_path / "second").exists()


def test_a_fetch_that_was_killed_is_made_anew(tmp_path: Path, source: Path) -> None:
    build(tmp_path / "first", source)
    (tmp_path / "second.new").mkdir()
    (tmp_path / "second.new" / "half").touch()
    Copies(tmp_path / "second", [source]).fetch()
    assert {path.name for path in (tmp_path / "second").iterdir()} == {"library", "link"}


def test_the_last_few_are_kept(tmp_path: Path, source: Path) -> None:
    for i in range(KEPT + 2):
        source.write_text(f"version {i}")
        build(tmp_path / f"build-{i}", source)
    assert len(list((tmp_path / "cache" / "native-tests").iterdir())) == KEPT
