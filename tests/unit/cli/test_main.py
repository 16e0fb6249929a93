"""The command as a whole: its version, and what it says where a package is missing."""

import re

from typer.testing import CliRunner

from alnair.cli import main


def test_the_version_names_the_commit() -> None:
    result = CliRunner().invoke(main.build([]), ["--version"])
    assert re.fullmatch(
        r"alnair \d+\.\d+\.\d+ \(commit ([0-9a-f]{12}\+?|unknown)\)\n", result.output
    )


def test_a_missing_package_is_told_with_what_brings_it() -> None:
    said = main.missing("cryptography.x509")
    assert said is not None
    assert "needs the package cryptography" in said
    assert "pip install 'alnair[local]'" in said


def test_a_missing_module_of_our_own_is_a_bug() -> None:
    assert main.missing("alnair.nowhere") is None
    assert main.missing(None) is None
