"""Paths of the node below a folder, with links as the node means them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from alnair.node import driver_root


def test_links_lead_to_paths_of_the_node(tmp_path: Path) -> None:
    files = tmp_path / "usr/lib"
    files.mkdir(parents=True)
    (files / "libcuda.so.580.1").touch()
    (files / "libcuda.so.1").symlink_to("libcuda.so.580.1")
    (tmp_path / "lib").symlink_to("/usr/lib")
    (tmp_path / "opt").symlink_to("usr/../lib")
    for path in ("/usr/lib/libcuda.so.1", "/lib/libcuda.so.1", "/opt/libcuda.so.1"):
        assert driver_root.real(tmp_path, Path(path)) == Path("/usr/lib/libcuda.so.580.1")
        assert driver_root.exists(tmp_path, Path(path))
    assert not driver_root.exists(tmp_path, Path("/lib/libnvidia-ml.so.1"))


def test_a_link_out_of_the_root_stays_in_it(tmp_path: Path) -> None:
    (tmp_path / "up").symlink_to("../../../../etc/hostname")
    assert driver_root.real(tmp_path, Path("/up")) == Path("/etc/hostname")
    assert not driver_root.exists(tmp_path, Path("/up"))


def test_a_circle_of_links_is_an_error_and_no_file(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("/a")
    with pytest.raises(OSError, match="/a leads in a circle of links"):
        driver_root.real(tmp_path, Path("/a"))
    assert not driver_root.exists(tmp_path, Path("/a"))


def test_below_the_root_of_the_machine_it_is_what_the_system_says(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    path = tmp_path / "link"
    assert str(driver_root.real(Path("/"), path)) == str(path.resolve())


def test_a_program_of_the_node_runs_with_the_nodes_files(tmp_path: Path) -> None:
    if os.geteuid() or not shutil.which("gcc"):
        pytest.skip("only root may change its root, and gcc builds a program without libraries")
    source = tmp_path / "says.c"
    source.write_text(
        '#include <stdio.h>\nint main(int n, char **words) { FILE *f = fopen("/word", "r");'
        ' printf("%c%s\\n", f ? fgetc(f) : 45, words[n - 1]); }'
    )
    folder = tmp_path / "bin"
    folder.mkdir()
    subprocess.run(["gcc", "-static", "-o", folder / "says", source], check=True)
    (tmp_path / "word").write_text("x")
    words = driver_root.command(tmp_path, "says", "y")
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "xy\n"
    assert driver_root.command(Path("/"), "says", "y") == ("says", "y")
