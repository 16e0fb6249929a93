"""Versions of images: a commit, or a commit and a digest of what differs from it."""

import re
import subprocess
from pathlib import Path

import pytest

from alnair.built_from import ROOT, describe
from alnair.local.errors import LocalClusterError
from alnair.local.own_images import checkout


def git(root: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", "-C", root, *who, *arguments], check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with one commit."""
    (tmp_path / "src" / "alnair").mkdir(parents=True)
    (tmp_path / "src" / "alnair" / "a.py").write_text("1\n")
    for name in checkout.INPUTS:
        path = tmp_path / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
    git(tmp_path, "init")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "one")
    return tmp_path


def test_a_commit_is_the_tag(clone: Path) -> None:
    commit = checkout.revision(clone)
    assert checkout.tag(clone).endswith(f"-g{commit[:12]}")
    assert describe(clone) == checkout.commit(clone) == commit[:12]


def test_a_changed_file_makes_another_tag_and_another_change_another_one(clone: Path) -> None:
    tags = {checkout.tag(clone)}
    for text in ("2\n", "3\n"):
        (clone / "src" / "alnair" / "a.py").write_text(text)
        tags.add(checkout.tag(clone))
    assert len(tags) == 3
    assert describe(clone) == checkout.commit(clone) == f"{checkout.revision(clone)[:12]}+"


def test_a_file_that_no_image_holds_changes_no_tag(clone: Path) -> None:
    before = checkout.tag(clone)
    (clone / "docs.md").write_text("new\n")
    (clone / "src" / "alnair" / "__pycache__").mkdir()
    (clone / "src" / "alnair" / "__pycache__" / "a.pyc").write_text("new\n")
    (clone / ".gitignore").write_text("__pycache__\n")
    assert checkout.tag(clone) == before
    assert "+" not in checkout.commit(clone)


def test_without_git_the_content_is_the_tag(tmp_path: Path, clone: Path) -> None:
    subprocess.run(["rm", "-rf", clone / ".git"], check=True)
    assert re.fullmatch(r"\d+\.\d+\.\d+-x[0-9a-f]{8}", checkout.tag(clone))
    assert checkout.time(clone) == 315532800
    assert describe(clone) == ""


def test_a_tag_is_one_for_registries_and_for_charts() -> None:
    assert re.fullmatch(r"[\w][\w.-]{0,127}", checkout.tag())
    assert re.fullmatch(r"\d+\.\d+\.\d+-[a-z][0-9a-z]*(\.x[0-9a-z]+)?", checkout.tag())


def test_an_installed_alnair_says_that_images_need_the_repository(tmp_path: Path) -> None:
    with pytest.raises(LocalClusterError, match="run the command from a clone"):
        checkout.require(tmp_path)


def test_all_inputs_are_there() -> None:
    assert not [name for name in checkout.INPUTS if not (ROOT / name).exists()]
