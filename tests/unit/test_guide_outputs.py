"""What judges the outputs that pages show can say no."""

import pytest

from kit import guide

COMMAND = "helm uninstall alnair"
SAID = """These resources were kept due to the resource policy:
[CustomResourceDefinition] podgroups.scheduling.x-k8s.io
[CustomResourceDefinition] elasticquotas.scheduling.x-k8s.io
[CustomResourceDefinition] horovodjobs.ai.centauruscloud.io

release "alnair" uninstalled
"""


def test_dots_stand_for_any_lines() -> None:
    assert guide.differs("install.md", COMMAND, SAID) == ""


def test_the_line_that_is_not_said_is_told() -> None:
    ended = SAID.replace('release "alnair" uninstalled', "done")
    assert guide.differs("install.md", COMMAND, ended) == 'release "alnair" uninstalled'


def test_a_line_that_comes_too_early_is_told() -> None:
    first, *others = SAID.splitlines()
    assert guide.differs("install.md", COMMAND, "\n".join([*others, first])) == first


def test_a_page_that_shows_nothing_is_an_error() -> None:
    with pytest.raises(KeyError, match="shows nothing of helm fly"):
        guide.shown("install.md", "helm fly")
