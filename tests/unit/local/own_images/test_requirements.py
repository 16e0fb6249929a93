"""What the machine lacks for images is said in one sentence, with the packages that bring it."""

import pytest

from alnair.local.own_images.requirements import problem


def test_a_machine_with_everything_can_make_images_if_it_allows_mounts() -> None:
    said = [
        problem(
            machine="x86_64",
            user=0,
            which=lambda tool: tool,
            exists=lambda path: True,
            trial=lambda refused=refused: refused,
        )
        for refused in (None, "images need mounts")
    ]
    assert said == [None, "images need mounts"]


def test_missing_programs_are_named_with_the_packages_to_install() -> None:
    missing = {"buildah", "nm"}
    said = problem(
        machine="x86_64",
        user=0,
        which=lambda tool: None if tool in missing else tool,
        exists=lambda path: False,
    )
    assert said is not None
    assert "buildah, nm, Debian's keys, not found here" in said
    assert "apt-get install binutils buildah debian-archive-keyring)" in said


@pytest.mark.parametrize(
    ("machine", "user", "missing", "words"),
    [
        ("riscv64", 0, "", "this is riscv64"),
        ("x86_64", 0, "apt-get", "run it on Debian 12 or Ubuntu"),
        ("x86_64", 1000, "", "run the command with sudo"),
    ],
)
def test_a_machine_that_cannot_make_images_is_told_why(
    machine: str, user: int, missing: str, words: str
) -> None:
    said = problem(
        machine=machine,
        user=user,
        which=lambda tool: None if tool == missing else tool,
        exists=lambda path: True,
    )
    assert said is not None
    assert words in said
