"""An archive has what `docker save` would write: layers once, and their digests."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from alnair.local.real_node.image_archive import Image, Layer, write


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program"
    path.write_bytes(b"machine code")
    path.chmod(0o755)
    return path


@pytest.fixture
def layer(program: Path) -> Layer:
    return Layer({"usr/bin/run": program}, {"bin": "usr/bin"}, {"etc/passwd": b"root\n"})


def read(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {one.name: archive.extractfile(one).read() for one in archive}  # type: ignore[union-attr]


def test_an_image_names_its_layers_by_their_digests(tmp_path: Path, layer: Layer) -> None:
    write([Image("one:local", (layer,), ("/bin/run",))], tmp_path / "a.tar")
    files = read(tmp_path / "a.tar")
    [image] = json.loads(files["manifest.json"])
    assert image["RepoTags"] == ["one:local"]
    [blob] = (files[name] for name in image["Layers"])
    config = json.loads(files[image["Config"]])
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(blob).hexdigest()}"]
    assert config["config"]["Entrypoint"] == ["/bin/run"]


def test_a_layer_has_files_links_and_the_folders_above_them(tmp_path: Path, layer: Layer) -> None:
    write([Image("one:local", (layer,), ())], tmp_path / "a.tar")
    files = read(tmp_path / "a.tar")
    [name] = json.loads(files["manifest.json"])[0]["Layers"]
    with tarfile.open(fileobj=io.BytesIO(files[name])) as tar:
        found = {one.name: (one.mode, one.isdir(), one.linkname) for one in tar}
    assert found == {
        "etc": (0o755, True, ""),
        "usr": (0o755, True, ""),
        "usr/bin": (0o755, True, ""),
        "tmp": (0o1777, True, ""),
        "bin": (0o777, False, "usr/bin"),
        "usr/bin/run": (0o755, False, ""),
        "etc/passwd": (0o644, False, ""),
    }


def test_equal_layers_are_held_once_and_equal_files_give_equal_archives(
    tmp_path: Path, layer: Layer, program: Path
) -> None:
    images = [Image("one:local", (layer,), ("/a",)), Image("two:local", (layer,), ("/b",))]
    write(images, tmp_path / "a.tar")
    assert len([name for name in read(tmp_path / "a.tar") if name.endswith(".tar")]) == 1
    program.touch()
    write(images, tmp_path / "b.tar")
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()
