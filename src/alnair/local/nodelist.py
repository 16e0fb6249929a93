"""Which nodes to simulate: N alike, or those of a node list in the form of the openb trace."""

import gzip
import zlib
from pathlib import Path

from alnair.local.errors import InvalidArgumentError, LocalClusterError
from alnair.traces import node_shapes
from alnair.traces.csv_table import Problem, TableError
from alnair.traces.openb import TraceNode, read_nodes

_GZIP = b"\x1f\x8b"


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
