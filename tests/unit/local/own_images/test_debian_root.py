"""What of a folder with Debian's packages goes into an image, and the image's form."""

import json
import tarfile
from pathlib import Path

from alnair.local.own_images import debian_root
from alnair.local.own_images.images import described


def test_an_image_has_what_is_named_and_nothing_below_it(tmp_path: Path) -> None:
    root, archive = tmp_path / "root", tmp_path / "image.tar"
    (root / "usr/lib").mkdir(parents=True)
    (root / "usr/lib/one").write_text("1")
    (root / "usr/lib/two").write_text("2")
    (root / "lib").symlink_to("usr/lib")
    names = ["lib", "usr/lib", "usr/lib/one"]
    debian_root.write_image(root, names, "a/b:1", {"LANG": "C.UTF-8"}, archive)
    image = described(archive)
    assert (image.name, image.archive) == ("a/b:1", archive)
    with tarfile.open(archive) as tar:
        layer = tar.extractfile("layer.tar")
        assert layer is not None
        with tarfile.open(fileobj=layer) as files:
            assert sorted(files.getnames()) == names
            assert files.getmember("lib").issym()
        config = tar.extractfile("config.json")
        assert config is not None
        assert json.load(config)["config"] == {"Env": ["LANG=C.UTF-8"]}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["image.tar", "root"]


def test_the_same_files_give_the_same_image_whenever_it_is_made(tmp_path: Path) -> None:
    made = []
    for name in ("one", "two"):
        root = tmp_path / name
        root.mkdir()
        (root / "file").write_text("1")
        debian_root.write_image(root, ["file"], "a/b:1", {}, tmp_path / f"{name}.tar")
        made.append(described(tmp_path / f"{name}.tar").digest)
    assert made[0] == made[1]


def test_a_library_goes_with_all_links_to_it_and_stays_within_the_folder(tmp_path: Path) -> None:
    libraries = tmp_path / "usr/lib"
    (libraries / "blas").mkdir(parents=True)
    (tmp_path / "lib").symlink_to("usr/lib")
    (libraries / "blas/libblas.so.3.1").write_text("")
    (libraries / "blas/libblas.so.3").symlink_to("libblas.so.3.1")
    (libraries / "libblas.so.3").symlink_to("/lib/blas/libblas.so.3")
    assert debian_root.with_targets(tmp_path, "lib/libblas.so.3") == {
        "usr/lib/libblas.so.3",
        "usr/lib/blas/libblas.so.3",
        "usr/lib/blas/libblas.so.3.1",
    }
