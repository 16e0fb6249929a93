"""The image with PyTorch: one for all checkouts of a machine, and another for another Python."""

import sys
from pathlib import Path

import pytest

from alnair.local.own_images import torch_image


def test_the_environment_of_a_checkout_makes_no_other_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = torch_image.key()
    linked = tmp_path / "python"
    linked.symlink_to(Path(sys.executable).resolve())
    monkeypatch.setattr(sys, "executable", str(linked))
    assert torch_image.key() == key
    monkeypatch.setattr(sys, "version", "4.0")
    assert torch_image.key() != key
