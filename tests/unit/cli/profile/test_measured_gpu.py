"""What the GPU that is measured on is called."""

import pytest
import typer

from alnair.cli.profile.measured_gpu import MeasuredGpu, checked_model

HERE = MeasuredGpu("NVIDIA-H100-80GB-HBM3")


def test_the_drivers_name_is_used_unless_a_shorter_one_of_the_same_gpu_is_given() -> None:
    assert checked_model(None, HERE) == "NVIDIA-H100-80GB-HBM3"
    assert checked_model("H100", HERE) == "H100"
    assert checked_model("A100", MeasuredGpu("")) == "A100", "no driver says otherwise"


def test_pairs_of_one_gpu_do_not_go_into_the_table_of_another() -> None:
    with pytest.raises(typer.BadParameter, match="the GPU here is NVIDIA-H100-80GB-HBM3, not A100"):
        checked_model("A100", HERE)
