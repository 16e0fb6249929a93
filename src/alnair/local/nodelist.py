"""Which nodes to simulate: N alike, shapes, or a node list in the form of the openb trace."""

import gzip
import zlib
from pathlib import Path
from typing import Final

from alnair.local.errors import InvalidArgumentError, LocalClusterError
from alnair.traces import node_shapes
from alnair.traces.csv_table import Problem, TableError
from alnair.traces.openb import TraceNode, read_nodes

#: Of nodes asked for by their number alone.
GPUS: Final = 8
MODEL: Final = "A100"
_GZIP = b"\x1f\x8b"


def wished(text: str, gpus: int | None, model: str | None) -> list[TraceNode]:
    """Nodes by their number alone, or by shapes, as `alnair simulate` takes them.

    Args:
        text: Such as `20`, or `20x8xA100,4x0:cpu=32`.
        gpus: GPUs on each, of nodes by their number; None: 8.
        model: Their model; None: A100.

    Raises:
        InvalidArgumentError: It is neither, a number is out of range, a model is not known, or GPUs
            are said twice.
    """
    if text.strip().isdecimal():
        gpus = GPUS if gpus is None else gpus
        return alike(int(text), gpus, MODEL if model is None else model)
    if not node_shapes.is_shape(text):
        raise InvalidArgumentError(
            f"{text!r} is neither a number nor shapes of nodes: write 20, {node_shapes.EXAMPLES}"
        )
    if gpus is not None or model is not None:
        raise InvalidArgumentError(
            f"{text!r} says the GPUs itself: leave --gpus-per-node and --gpu-model away"
        )
    try:
        return node_shapes.read_shapes(text)
    except ValueError as error:
        raise InvalidArgumentError(str(error)) from None


def alike(count: int, gpus: int, model: str) -> list[TraceNode]:
    """Nodes of one kind; names follow the kind, so asking for more adds to those there are.

    Args:
        count: How many.
        gpus: GPUs on each; 0 makes CPU nodes.
        model: Their model, as in `model.gpu_models`; upper or lower case.

    Raises:
        InvalidArgumentError: A number is out of range or the model is not known.
    """
    try:
        return node_shapes.alike(count, gpus, model)
    except ValueError as error:
        raise InvalidArgumentError(str(error)) from None


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
