"""The nodes of a simulation, where the user names them: by their shape, or in a node list."""

from pathlib import Path

from alnair.model.nodes import Node
from alnair.sim.inputs.pod_templates import node
from alnair.traces import files
from alnair.traces.csv_table import Problem, TableError
from alnair.traces.files import Source, TraceFileError
from alnair.traces.node_shapes import EXAMPLES, is_shape, read_shapes
from alnair.traces.openb import TraceNode, read_nodes


def named(text: str) -> tuple[Node, ...]:
    """Return the nodes of `--nodes`.

    Args:
        text: Shapes, or the path of a node list in the form of openb.

    Raises:
        TraceFileError: All that is wrong with it.
    """
    if is_shape(text):
        try:
            return tuple(map(node, read_shapes(text)))
        except ValueError as error:
            raise TraceFileError(f"--nodes: {error}") from None
    if not Path(text).exists():
        raise TraceFileError(
            f"--nodes {text}: this is neither a file nor a shape of nodes: write a node list's "
            f"path, or {EXAMPLES}"
        )
    return tuple(map(node, listed(Path(text))))


def listed(source: Source) -> tuple[TraceNode, ...]:
    """Return the nodes of a node list.

    Raises:
        TraceFileError: All that is wrong with it.
    """
    problems: list[Problem] = []
    found = read_nodes(files.lines(source), str(source), problems)
    if problems:
        raise TraceFileError(str(TableError(problems)))
    return found
