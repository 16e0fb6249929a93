"""GPU models that Alnair knows by name: memory, and links to neighbours on a node.

Used for simulated nodes and for traces that name a model and no size; an agent on a real node asks
the driver. Sizes are nominal, as on the data sheet (GiB x 1024), unless the comment says otherwise.
"""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One model.

    Attributes:
        name: As in the node label `nvidia.com/gpu.product`.
        memory_mib: Memory of one GPU, in MiB.
        nvlinks: NVLink connections between each two GPUs of a node, 0 for PCIe only.
    """

    name: str
    memory_mib: int
    nvlinks: int = 0


_MODELS = (
    # The openb trace (Alibaba, 2023) names these; it gives no memory sizes.
    GpuModel("T4", 15360),  # as NVIDIA's driver reports it: 16 GiB with 1 GiB kept for ECC
    GpuModel("P100", 16384),  # NVIDIA Tesla P100 data sheet, 16 GB version
    GpuModel("V100M16", 16384, 2),  # V100 SXM2 data sheet, 16 GB version
    GpuModel("V100M32", 32768, 2),  # V100 SXM2 data sheet, 32 GB version
    GpuModel("A10", 24576),  # A10 data sheet
    # Anonymous in the trace. These two sizes are our assumption: of the classes above and beyond
    # the V100.
    GpuModel("G2", 32768),
    GpuModel("G3", 81920),
    # For `alnair up --gpu-model`: data sheets of each.
    GpuModel("V100", 32768, 2),
    GpuModel("L4", 24576),
    GpuModel("A30", 24576),
    GpuModel("A40", 49152),
    GpuModel("L40S", 49152),
    GpuModel("A100", 81920, 12),
    GpuModel("A100-40GB", 40960, 12),
    GpuModel("H100", 81920, 18),
    GpuModel("H200", 144384, 18),
    GpuModel("B200", 184320, 18),
)

#: Architectures by the names of their models. Source: CUDA's list of GPUs by compute capability.
_ARCHITECTURES: Final = (
    ("blackwell", r"G?B[123]00|RTX (PRO )?[56]0\d0( Blackwell)?$|RTX PRO"),
    ("hopper", r"G?H(100|200|20|800)"),
    ("ada-lovelace", r"L(4|20|40S?)|RTX 40\d0|RTX \d+ Ada"),
    ("ampere", r"A(2|10G?|16|30|40|100|800)|RTX (30\d0|A\d+)"),
    ("turing", r"T4G?|RTX 20\d0|Quadro RTX|TITAN RTX|GTX 16\d0"),
    ("volta", r"V100\w*|TITAN V"),
    ("pascal", r"P(4|6|40|100)|GTX 10\d0|TITAN Xp?"),
    ("maxwell", r"M(4|6|10|40|60)|GTX 9\d0"),
    ("kepler", r"K(20|40|80)\w?"),
)

#: Name → model.
MODELS: Final = {model.name: model for model in _MODELS}


def architecture(model: str) -> str:
    """Return the architecture of a GPU in lower case; "" where the model is not known.

    Args:
        model: As NVML names it, or the node label.
    """
    text = re.sub(r"[-_]+", " ", model).removeprefix("NVIDIA ").removeprefix("Tesla ")
    text = text.removeprefix("GeForce ")
    return next(
        (name for name, known in _ARCHITECTURES if re.match(rf"(?:{known})(?![0-9A-Za-z])", text)),
        "",
    )
