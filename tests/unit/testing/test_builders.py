"""Nodes of the test kit for plugins."""

import pytest

from alnair.model.gpu_models import MODELS
from alnair.testing import node


@pytest.mark.parametrize("model", ["A100", "A100-40GB", "T4"])
def test_gpus_have_the_memory_of_their_model(model: str) -> None:
    made = node("n", gpus=2, gpu_model=model)
    assert [(g.model, g.memory_mib) for g in made.gpus] == [(model, MODELS[model].memory_mib)] * 2


def test_a_model_that_nobody_knows_needs_its_memory() -> None:
    assert node("n", gpus=1, gpu_model="X1", gpu_memory_mib=1000).gpus[0].memory_mib == 1000
    with pytest.raises(ValueError, match="node n: give gpu_memory_mib, X1 is no known model"):
        node("n", gpus=1, gpu_model="X1")
    assert node("n", gpu_model="X1").gpus == ()
