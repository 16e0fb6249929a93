"""What a command says that cannot do what it shall."""

from pathlib import Path

import pytest
import typer

from alnair.cli.failures import expected


def said(capsys: pytest.CaptureFixture[str], file: Path, prefix: str = "alnair: ") -> str:
    with pytest.raises(typer.Exit), expected(OSError, prefix=prefix):
        file.read_bytes()
    return capsys.readouterr().err


def test_a_file_that_is_not_there_is_told_once_and_without_numbers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "absent"
    assert said(capsys, file) == f"alnair: {file}: No such file or directory\n"
    assert said(capsys, file, f"error: {file}: ") == f"error: {file}: No such file or directory\n"


def test_an_error_without_a_file_says_its_own_words(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), expected(OSError):
        raise OSError("the other side hung up")
    assert capsys.readouterr().err == "alnair: the other side hung up\n"
