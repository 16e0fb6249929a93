"""Nodes by a word: so many alike, with so many GPUs of a model, or CPU nodes."""

import re
from typing import Final

from alnair.model import quantity
from alnair.model.gpu_models import MODELS
from alnair.traces.openb import TraceNode

MOST_NODES: Final = 10_000
MOST_GPUS: Final = 64
_MIB: Final = 1 << 20
#: Of millicores, and of bytes: no machine has so much.
_MOST: Final = 1 << 50
#: What a generated node has for each GPU, as the eight-GPU machines of openb: 12 cores and 48 GiB.
CPU_MILLI_PER_GPU: Final = 12_000
MEMORY_MIB_PER_GPU: Final = 49_152
_SHAPE: Final = re.compile(
    r"(?P<count>\d{1,9})x(?P<gpus>\d{1,9})(?:x(?P<model>[A-Za-z][\w.-]*))?(?::(?P<amounts>.+))?"
)
#: Between two shapes; the comma between two amounts has no number behind it.
_BETWEEN: Final = re.compile(r",\s*(?=\d+x)")
#: Told where a shape is asked for.
EXAMPLES: Final = (
    "300x8xV100M32 (nodes, GPUs on each, model), 300x8xV100M32:cpu=96,memory=768Gi, or "
    "100x0:cpu=32,memory=128Gi (nodes without GPUs)"
)


def alike(count: int, gpus: int, model: str) -> list[TraceNode]:
    """Return nodes of one kind; names follow the kind, so more only adds to those there are.

    Args:
        count: How many.
        gpus: GPUs on each; 0 makes CPU nodes.
        model: Their model, as in `model.gpu_models`; upper or lower case.

    Raises:
        ValueError: A number is out of range or the model is not known.
    """
    _check(count, gpus)
    known = known_model(model) if gpus else ""
    prefix = f"{known.lower()}x{gpus}" if gpus else "cpu"
    size = max(gpus, 1)
    return [
        TraceNode(
            name=f"{prefix}-{index:04d}",
            cpu_milli=size * CPU_MILLI_PER_GPU,
            memory_mib=size * MEMORY_MIB_PER_GPU,
            gpus=gpus,
            model=known,
        )
        for index in range(count)
    ]


def is_shape(text: str) -> bool:
    """Whether the text is meant as shapes of nodes, and not as the name of a file."""
    return bool(re.fullmatch(r"\d+x\d+(?:[x:,].*)?", text.strip()))


def read_shapes(text: str) -> list[TraceNode]:
    """Return the nodes of shapes with commas between them, such as `300x8xV100M32,20x0:cpu=32`.

    Raises:
        ValueError: A shape cannot be read; says which and how to write it.
    """
    nodes: list[TraceNode] = []
    made: dict[str, int] = {}
    for word in map(str.strip, _BETWEEN.split(text)):
        match = _SHAPE.fullmatch(word)
        if match is None or bool(int(match["gpus"])) != bool(match["model"]):
            raise ValueError(f"{word!r} is no shape of nodes: write it as {EXAMPLES}")
        count, gpus = int(match["count"]), int(match["gpus"])
        _check(count, gpus)
        model = known_model(match["model"]) if gpus else ""
        size = max(gpus, 1)
        usual = size * CPU_MILLI_PER_GPU, size * MEMORY_MIB_PER_GPU * _MIB
        cpu, memory = amounts(word, match["amounts"] or "", usual)
        prefix = f"{model.lower()}x{gpus}" if gpus else "cpu"
        first = made.get(prefix, 0)
        made[prefix] = first + count
        nodes.extend(
            TraceNode(f"{prefix}-{index:04d}", cpu, memory // _MIB, gpus, model)
            for index in range(first, first + count)
        )
    if not 1 <= len(nodes) <= MOST_NODES:
        raise ValueError(f"{len(nodes)} nodes cannot be simulated: ask for 1 to {MOST_NODES}")
    return nodes


def amounts(text: str, written: str, usual: tuple[int, int]) -> tuple[int, int]:
    """Return the millicores and bytes of a node.

    Args:
        text: The whole shape, for the error.
        written: Such as `cpu=96,memory=768Gi`, either or none of them.
        usual: What is not written.

    Raises:
        ValueError: It cannot be read; says what and where.
    """
    cpu, memory = usual
    for part in filter(None, written.split(",")):
        name, _, amount = part.partition("=")
        try:
            if name == "cpu":
                found = cpu = quantity.milli_value(amount)
            elif name == "memory":
                found = memory = quantity.value(amount)
            else:
                raise ValueError(f"{part!r} is not understood: write cpu=… or memory=…")
        except ValueError as error:
            raise ValueError(f"{text!r}: {error}") from None
        if not 0 < found <= _MOST:
            raise ValueError(f"{text!r}: {part!r} must be more than 0 and less than {_MOST}")
    return cpu, memory


def known_model(name: str) -> str:
    """Return the model's name as it is spelled.

    Raises:
        ValueError: There is none of this name.
    """
    for known in MODELS:
        if known.lower() == name.lower():
            return known
    raise ValueError(f"GPU model {name!r} is not known; known are {', '.join(MODELS)}")


def _check(count: int, gpus: int) -> None:
    if not 0 <= count <= MOST_NODES:
        raise ValueError(f"{count} nodes cannot be simulated: ask for 0 to {MOST_NODES}")
    if not 0 <= gpus <= MOST_GPUS:
        raise ValueError(f"a node cannot have {gpus} GPUs: ask for 0 to {MOST_GPUS}")
