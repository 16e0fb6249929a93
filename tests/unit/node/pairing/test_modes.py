"""What is changed about commands so that they share a GPU in a mode."""

from pathlib import Path

import pytest

from alnair.model.pair_rates import LIMITED, MPS, TIME_SLICED
from alnair.node.pairing.modes import sharing
from alnair.node.pairing.workload import Command, RunError

COMMAND = Command(("python", "train.py"), "step", {"SEED": "1"})


def test_those_that_take_turns_find_no_mps_daemon_though_there_be_one() -> None:
    found = sharing(COMMAND, TIME_SLICED, gpu="1")
    assert found.words == COMMAND.words
    assert found.environment["CUDA_VISIBLE_DEVICES"] == "1"
    assert found.environment["SEED"] == "1"
    assert not Path(found.environment["CUDA_MPS_PIPE_DIRECTORY"]).exists()


def test_limited_ones_run_with_a_slice_of_the_gpu_that_is_named() -> None:
    found = sharing(COMMAND, LIMITED, percent=30, gpu="2", folder=Path("/run/agent"))
    text = " ".join(found.words)
    assert "agent run --gpu 2 --compute 30 --folder /run/agent -- python train.py" in text
    assert "CUDA_VISIBLE_DEVICES" not in found.environment, "in its slice it is the first"
    assert found.pattern == "step"


def test_clients_of_mps_are_led_to_the_daemon_that_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    with pytest.raises(RunError, match="there is no MPS daemon at"):
        sharing(COMMAND, MPS)
    (tmp_path / "control").touch()
    assert sharing(COMMAND, MPS).environment["CUDA_MPS_PIPE_DIRECTORY"] == str(tmp_path)
