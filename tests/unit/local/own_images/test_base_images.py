"""The base images are those that the Containerfile begins with."""

import re

from alnair.built_from import ROOT
from alnair.local.own_images import base_images, requirements


def test_the_containerfile_begins_with_the_images_that_are_made() -> None:
    text = (ROOT / "deploy" / "images" / "Containerfile").read_text()
    named = re.findall(r"^FROM (?:--platform=\S+ )?([\w.-]+/\S+)", text, re.MULTILINE)
    assert set(named) == {base_images.FINAL, base_images.BUILD}


def test_the_build_image_adds_pip_to_the_final_one() -> None:
    more = {*base_images.PACKAGES[base_images.BUILD]} - {*base_images.PACKAGES[base_images.FINAL]}
    assert "python3-pip" in more


def test_the_users_of_the_final_image_are_those_that_the_containerfile_names() -> None:
    text = (ROOT / "deploy" / "images" / "Containerfile").read_text()
    users = re.findall(r"^USER (\d+):(\d+)$", text, re.MULTILINE)
    assert users == [("65532", "65532"), ("0", "0")]


def test_architectures_are_the_same_in_the_build_stage() -> None:
    script = (ROOT / "deploy" / "images" / "assemble.py").read_text()
    for machine, architecture in requirements.ARCHITECTURES.items():
        assert f'"{architecture}": "{machine}"' in script
