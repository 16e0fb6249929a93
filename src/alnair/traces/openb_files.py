"""Trace files from disk, plain or .gz: the user's, or those that ship with Alnair."""

from collections.abc import Callable, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TypeVar

import msgspec

from alnair.traces.csv_table import Problem, TableError
from alnair.traces.files import Source, TraceFileError, lines
from alnair.traces.openb import TraceNode, TracePod, read_nodes, read_pods

NODE_LIST = "openb_node_list_gpu_node.csv"
POD_LIST = "openb_pod_list_default.csv"
_ANY_NODE_LIST = ("*node*.csv", "*node*.csv.gz")

T = TypeVar("T")


class Trace(msgspec.Struct, frozen=True):
    """Nodes and pods of a trace, as the files list them."""

    nodes: tuple[TraceNode, ...]
    pods: tuple[TracePod, ...]


def packaged() -> Traversable:
    """The folder of the trace that ships with Alnair; its ORIGIN.md says where it is from."""
    return resources.files("alnair") / "data" / "openb"


def load(trace: Path | None = None, pods: Path | None = None) -> Trace:
    """Read a trace.

    Args:
        trace: Folder with a node list, or a node list; None for the shipped one.
        pods: Pod list: a path, a file's name in the folder, or the word that tells an openb list
            from the others, such as `gpuspec10`; None for the default list of the folder.

    Raises:
        TraceFileError: All that is wrong with both files.
    """
    problems: list[str] = []
    nodes = _read(lambda: node_list(trace), read_nodes, problems)
    read = _read(lambda: pod_list(trace, pods), read_pods, problems)
    if problems:
        raise TraceFileError("\n".join(problems))
    return Trace(tuple(nodes), tuple(read))


def names(order: str) -> list[str]:
    """Read a list of names, one a line: a path, or a shipped one such as `default-42.pods`.

    Raises:
        TraceFileError: There is no such file, or nothing in it.
    """
    path: Source = Path(order)
    shipped = packaged() / f"{order}.txt.gz"
    if not Path(order).exists() and shipped.is_file():
        path = shipped
    found = [line for line in map(str.strip, lines(path)) if line]
    if not found:
        raise TraceFileError(f"{order}: there is no name in it: write one a line")
    return found


def _read(
    find: Callable[[], Source],
    read: Callable[[list[str], str, list[Problem]], Sequence[T]],
    problems: list[str],
) -> Sequence[T]:
    try:
        source = find()
        found = lines(source)
    except TraceFileError as error:
        problems.append(str(error))
        return ()
    wrong: list[Problem] = []
    result = read(found, str(source), wrong)
    if wrong:
        problems.append(str(TableError(wrong)))
    return result


def node_list(trace: Path | None) -> Source:
    """Return the node list of a folder, or the list itself; None for the shipped one.

    Raises:
        TraceFileError: There is none, or more than one.
    """
    folder: Source = packaged() if trace is None else trace
    if trace is not None and not trace.is_dir():
        return trace
    if found := _plain_or_gz(folder, NODE_LIST):
        return found
    others = sorted(p for pattern in _ANY_NODE_LIST for p in Path(str(folder)).glob(pattern))
    if len(others) == 1:
        return others[0]
    have = ", ".join(p.name for p in others) or "none"
    raise TraceFileError(
        f"{folder}: no {NODE_LIST} and not just one node list (there are: {have}): "
        "name the node list itself"
    )


def pod_list(trace: Path | None, pods: Path | None) -> Source:
    """Return a pod list; arguments as for `load`.

    Raises:
        TraceFileError: There is none.
    """
    folder: Source = packaged() if trace is None else trace
    if pods is not None and pods.exists():
        return pods
    if folder.is_dir():
        wanted = (POD_LIST,) if pods is None else (str(pods), f"openb_pod_list_{pods}.csv")
        for name in wanted:
            if found := _plain_or_gz(folder, name):
                return found
    if pods is None:
        raise TraceFileError(f"{folder}: no {POD_LIST} there: say which list with --pods")
    raise TraceFileError(f"{pods}: no such file, neither here nor in {folder}: check --pods")


def _plain_or_gz(folder: Source, name: str) -> Source | None:
    for candidate in (name, f"{name}.gz"):
        path = folder / candidate
        if path.is_file():
            return path
    return None
