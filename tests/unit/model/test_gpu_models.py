"""Models of GPUs by their names."""

import pytest

from alnair.model.gpu_models import MODELS, architecture


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", "hopper"),
        ("NVIDIA-H200", "hopper"),
        ("NVIDIA GH200 480GB", "hopper"),
        ("NVIDIA A100-SXM4-80GB", "ampere"),
        ("NVIDIA A10G", "ampere"),
        ("NVIDIA RTX A6000", "ampere"),
        ("Tesla T4", "turing"),
        ("Tesla V100-SXM2-32GB", "volta"),
        ("Tesla P100-PCIE-16GB", "pascal"),
        ("Tesla K80", "kepler"),
        ("NVIDIA TITAN X (Pascal)", "pascal"),
        ("NVIDIA L4", "ada-lovelace"),
        ("NVIDIA L40S", "ada-lovelace"),
        ("NVIDIA GeForce RTX 4090", "ada-lovelace"),
        ("NVIDIA RTX 6000 Ada Generation", "ada-lovelace"),
        ("NVIDIA GeForce RTX 5090", "blackwell"),
        ("NVIDIA B200", "blackwell"),
        ("NVIDIA GB200", "blackwell"),
        ("G2", ""),
        ("", ""),
    ],
)
def test_a_models_architecture_is_known_by_its_name(model: str, expected: str) -> None:
    assert architecture(model) == expected


def test_every_model_of_a_data_sheet_has_an_architecture() -> None:
    unknown = {name for name in MODELS if not architecture(name)}
    assert unknown == {"G2", "G3"}, "anonymous in the trace"
