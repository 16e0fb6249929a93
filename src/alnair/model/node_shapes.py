"""Nodes by a word: so many alike, with so many GPUs of a model, or CPU nodes."""

import re
from typing import Final

from alnair.model.gpus import MODELS
from alnair.model.openb import TraceNode

MOST_NODES: Final = 10_000
MOST_GPUS: Final = 64
_MOST_CORES: Final = 10_000
_MOST_GIB: Final = 1 << 20
#: What a generated node has for each GPU, as the eight-GPU machines of openb: 12 cores and 48 GiB.
CPU_MILLI_PER_GPU: Final = 12_000
MEMORY_MIB_PER_GPU: Final = 49_152
#: GiB for each core of a CPU node, the same ratio.
_GIB_PER_CORE: Final = 4

_SHAPE: Final = re.compile(
    r"(?P<count>\d{1,9})x(?P<size>\d{1,9})x(?P<model>[A-Za-z][\w-]*)"
    r"(?:/(?P<cores>\d{1,9})c)?(?:/(?P<gib>\d{1,9})Gi)?"
)
#: Told where a shape is asked for.
EXAMPLES: Final = "300x8xV100M32 (nodes, GPUs on each, model), 100x32xcpu (nodes, cores)"


def alike(count: int, gpus: int, model: str) -> list[TraceNode]:
    """Return nodes of one kind; names follow the kind, so more only adds to those there are.

    Args:
        count: How many.
        gpus: GPUs on each; 0 makes CPU nodes.
        model: Their model, as in `model.gpus`; upper or lower case.

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
    return bool(re.fullmatch(r"\d+x\d+x.*", text.strip()))


def read_shapes(text: str) -> list[TraceNode]:
    """Return the nodes of shapes with commas between them, such as `300x8xV100M32,20x32xcpu`.

    `/96c` and `/768Gi` after a shape say the cores and the memory of a node.

    Raises:
        ValueError: A shape cannot be read; says which and how to write it.
    """
    nodes: list[TraceNode] = []
    made: dict[str, int] = {}
    for word in (part.strip() for part in text.split(",")):
        match = _SHAPE.fullmatch(word)
        if match is None:
            raise ValueError(f"{word!r} is no shape of nodes: write it as {EXAMPLES}")
        count, size = int(match["count"]), int(match["size"])
        is_cpu = match["model"].lower() == "cpu"
        model = "" if is_cpu else known_model(match["model"])
        _check(count, 0 if is_cpu else size)
        cores = int(match["cores"] or (size if is_cpu else size * CPU_MILLI_PER_GPU // 1000))
        gib = int(match["gib"] or (_GIB_PER_CORE * cores))
        if size < 1 or not 1 <= cores <= _MOST_CORES or not 1 <= gib <= _MOST_GIB:
            raise ValueError(
                f"{word!r} cannot be simulated: a node has 1 to {_MOST_CORES} cores, 1 to "
                f"{_MOST_GIB} GiB, and GPU nodes have a GPU"
            )
        prefix = f"cpu{cores}" if is_cpu else f"{model.lower()}x{size}"
        first = made.get(prefix, 0)
        made[prefix] = first + count
        nodes.extend(
            TraceNode(
                name=f"{prefix}-{index:04d}",
                cpu_milli=cores * 1000,
                memory_mib=gib * 1024,
                gpus=0 if is_cpu else size,
                model=model,
            )
            for index in range(first, first + count)
        )
    if not 1 <= len(nodes) <= MOST_NODES:
        raise ValueError(f"{len(nodes)} nodes cannot be simulated: ask for 1 to {MOST_NODES}")
    return nodes


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
