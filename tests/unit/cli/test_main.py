"""The command as a whole: its version, and what it says where a package is missing."""

import re

import pytest
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


@pytest.mark.parametrize("verb", main.COMMANDS)
def test_the_usage_of_a_verb_names_arguments_in_capitals(verb: str) -> None:
    usage = CliRunner().invoke(main.build([verb]), [verb, "--help"]).output.splitlines()[0]
    assert not re.search("[a-z<]", usage.partition(f" {verb} ")[2])


@pytest.mark.parametrize("verb", main.COMMANDS)
def test_each_example_of_a_verb_has_a_line_of_its_own(verb: str) -> None:
    said = CliRunner().invoke(main.build([verb]), [verb, "--help"]).output
    assert "For example:" not in said
    # A line may go on to another command after |, but begins one of ours only.
    assert all(line.partition("|")[0].count(f"alnair {verb} ") <= 1 for line in said.splitlines())
    listed = said.partition("Examples:\n")[2].partition("\n\n")[0].splitlines()
    assert all(line.startswith("    ") for line in listed)
    assert bool(listed) == ("Examples:" in said)
