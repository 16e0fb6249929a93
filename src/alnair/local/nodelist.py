"""Which nodes to simulate: N alike, or those of a node list in the form of the openb trace."""

import gzip
import zlib
from pathlib import Path

from alnair.local.errors import InvalidArgumentError, LocalClusterError
from alnair.model.csv_table import Problem, TableError
from alnair.model.gpus import MODELS
from alnair.model.openb import TraceNode, read_nodes

_MOST_NODES = 10_000
_MOST_GPUS = 64
#: What a generated node has for each GPU, as the eight-GPU machines of openb: 12 cores and 48 GiB.
_CPU_MILLI_PER_GPU = 12_000
_MEMORY_MIB_PER_GPU = 49_152
_GZIP = b"\x1f\x8b"


def alike(count: int, gpus: int, model: str) -> list[TraceNode]:
    """Nodes of one kind; names follow the kind, so asking for more adds to those there are.

    Args:
        count: How many.
        gpus: GPUs on each; 0 makes CPU nodes.
        model: Their model, as in `model.gpus`; upper or lower case.

    Raises:
        InvalidArgumentError: A number is out of range or the model is not known.
    """
    if not 0 <= count <= _MOST_NODES:
        raise InvalidArgumentError(f"{count} nodes cannot be simulated: ask for 0 to {_MOST_NODES}")
    if not 0 <= gpus <= _MOST_GPUS:
        raise InvalidArgumentError(f"a node cannot have {gpus} GPUs: ask for 0 to {_MOST_GPUS}")
    known = _model(model) if gpus else ""
    prefix = f"{known.lower()}x{gpus}" if gpus else "cpu"
    size = max(gpus, 1)
    return [
        TraceNode(
            name=f"{prefix}-{index:04d}",
            cpu_milli=size * _CPU_MILLI_PER_GPU,
            memory_mib=size * _MEMORY_MIB_PER_GPU,
            gpus=gpus,
            model=known,
        )
        for index in range(count)
    ]


def read(path: Path) -> list[TraceNode]:
    """Reads a node list: a CSV file, plain or gzip-compressed.

    Raises:
        LocalClusterError: The file cannot be read, or all that is wrong in it, with line and
            column.
    """
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
        lines = data.decode("utf-8-sig").splitlines(keepends=True)
    except UnicodeDecodeError as error:
        raise LocalClusterError(f"{path}: this is not text: give a CSV file") from error
    except (EOFError, zlib.error) as error:
        raise LocalClusterError(f"{path}: damaged gzip file ({error}): get it anew") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise LocalClusterError(f"{path}: cannot be read ({reason}): check the path") from error
    problems: list[Problem] = []
    nodes = read_nodes(lines, str(path), problems)
    if problems:
        raise LocalClusterError(str(TableError(problems)))
    return list(nodes)


def _model(name: str) -> str:
    for known in MODELS:
        if known.lower() == name.lower():
            return known
    raise InvalidArgumentError(f"GPU model {name!r} is not known; known are {', '.join(MODELS)}")
