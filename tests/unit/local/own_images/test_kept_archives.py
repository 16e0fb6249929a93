"""Archives of images that other checkouts use stay when one makes its own."""

import os
from pathlib import Path
from types import ModuleType

import pytest

from alnair.local.own_images import horovod_image, kept_archives, torch_image
from alnair.local.report import NO_REPORT


def test_those_that_were_used_last_stay(tmp_path: Path) -> None:
    names = [tmp_path / name for name in ("mine", "theirs", "old", "older")]
    for age, path in enumerate(names):
        path.touch()
        os.utime(path, (1e9 - age, 1e9 - age))
    kept_archives.note_use(tmp_path / "older")
    assert kept_archives.unused(tmp_path.iterdir(), 2) == [tmp_path / "old", tmp_path / "theirs"]
    assert kept_archives.unused(tmp_path.iterdir(), 4) == []


@pytest.mark.parametrize("image", [horovod_image, torch_image])
def test_who_takes_an_image_from_the_cache_uses_it(
    image: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "problem", lambda: None, raising=False)
    monkeypatch.setattr(image, "described", lambda archive: archive)

    def made(_work: Path, archive: Path, *_: object) -> None:
        archive.touch()
        os.utime(archive, (1e9, 1e9))

    monkeypatch.setattr(image, "_build", made)
    environ = {"ALNAIR_CACHE": str(tmp_path)}
    archive = image.build(environ, NO_REPORT)
    os.utime(archive, (1e9, 1e9))
    assert image.build(environ, NO_REPORT) == archive
    assert archive.stat().st_mtime > 1e9
