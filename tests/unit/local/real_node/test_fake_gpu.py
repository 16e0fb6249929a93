"""Which fake GPUs there are, and what is said where there are none."""

from pathlib import Path

import pytest

from alnair.local.errors import InvalidArgumentError
from alnair.local.real_node import fake_gpu


def test_a_model_without_a_profile_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidArgumentError, match=r"no fake GPU 'x9': choose among .*h100"):
        fake_gpu.check_model("x9")


def test_an_alnair_that_was_installed_from_a_wheel_says_that_it_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_gpu, "SOURCES", tmp_path)
    with pytest.raises(InvalidArgumentError, match="installed from a wheel: leave out --real-node"):
        fake_gpu.check_model("h100")
