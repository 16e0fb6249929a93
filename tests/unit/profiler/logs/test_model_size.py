"""Sizes of models as frameworks print them."""

import pytest

from alnair.profiler.logs.log_reader import LogReader
from alnair.profiler.logs.model_size import ModelSize, read

MB = 1e6 / 2**20


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["number of parameters: 123.65M"], ModelSize(parameters=123.65e6)),
        (["  Number of trainable parameters = 109,483,778"], ModelSize(trained=109_483_778)),
        (
            ["trainable params: 294,912 || all params: 124,734,720 || trainable%: 0.2364"],
            ModelSize(parameters=124_734_720, trained=294_912),
        ),
        (
            [
                " Total params: 1,199,882 (4.58 MB)",
                " Trainable params: 1,199,690 (4.58 MB)",
                " Non-trainable params: 192 (768.00 Byte)",
            ],
            ModelSize(parameters=1_199_882, trained=1_199_690),
        ),
        (
            [
                "124 M     Trainable params",
                "0         Non-trainable params",
                "124 M     Total params",
                "497.759   Total estimated model params size (MB)",
            ],
            ModelSize(124e6, 124e6, 497.759 * MB),
        ),
        (
            ["Total params: 11,689,512", "Params size (MB): 46.76"],
            ModelSize(parameters=11_689_512, weights_mib=46.76 * MB),
        ),
        (
            ["Model llama3 8B size: 8,030,261,248 total parameters"],
            ModelSize(parameters=8_030_261_248),
        ),
        (["Model loading took 14.99 GiB and 3.4 seconds"], ModelSize(weights_mib=14.99 * 1024)),
        (["Loading model weights took 14.9888 GB"], ModelSize(weights_mib=14.9888 * 1024)),
        (
            ["Total params: 900", "Total params: 1,000,000", "Total params: 20"],
            ModelSize(parameters=1e6),
        ),
        (
            [" > number of parameters on (tensor, pipeline) model parallel rank (0, 0): 354871296"],
            ModelSize(),
        ),
        (["step 5 loss 0.3 params/norm 12"], ModelSize()),
        (["no model, no params"], ModelSize()),
        (["number of parameters: " + "9" * 400], ModelSize()),
    ],
)
def test_a_size_is_read_and_the_largest_counts(lines: list[str], expected: ModelSize) -> None:
    found = ModelSize()
    for line in lines:
        found = read(line.strip(), found)
    assert found == expected


def test_a_log_is_no_training_for_its_models_size() -> None:
    reader = LogReader()
    reader.feed(b"Model loading took 1.5 GiB and 3 seconds\n")
    assert reader.findings().model.weights_mib == 1536
    assert reader.findings().readings == 0
