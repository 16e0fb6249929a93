"""The archives of images: made once for a checkout, and kept while they are used."""

import os
from pathlib import Path

import pytest

from alnair.local.own_images import images, requirements
from alnair.local.report import NO_REPORT


def test_archives_that_are_used_again_are_as_if_they_were_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[Path] = []

    def build(*words: object) -> None:
        paths = [one for one in words if isinstance(one, Path)]
        built.append(next(one for one in paths if "archives" in one.parts))
        built[-1].mkdir(parents=True)

    monkeypatch.setattr(requirements, "problem", lambda: None)
    monkeypatch.setattr(images, "_build", build)
    monkeypatch.setattr(images, "described", lambda archive: archive)
    environ = {"ALNAIR_CACHE": str(tmp_path)}
    archives = images.build(environ, NO_REPORT)
    os.utime(built[0], (0, 0))
    assert images.build(environ, NO_REPORT) == archives
    assert len(built) == 1
    assert built[0].stat().st_mtime > 0, "or another checkout's build would remove them"
