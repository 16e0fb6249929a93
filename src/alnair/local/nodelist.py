"""Which nodes to simulate: N alike, or those of a node list in the form of the openb trace."""

import csv
import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from alnair.local.errors import LocalClusterError
from alnair.model.gpus import MODELS, GpuModel

if TYPE_CHECKING:
    from _csv import Reader

#: The columns of a node list: name, thousandths of a core, MiB, number of GPUs, their model (empty
#: without GPUs).
COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
#: More GPUs than any machine has: a number above it is a mistake.
_MOST_GPUS = 64
#: What a generated node has for each GPU, as the eight-GPU machines of openb: 12 cores and 48 GiB.
_CPU_PER_GPU = 12_000
_MEMORY_PER_GPU = 49_152


@dataclass(frozen=True, slots=True)
class SimulatedNode:
    """A node to simulate.

    Attributes:
        name: Its name.
        cpu_milli: Thousandths of a core.
        memory_mib: Main memory, in MiB.
        gpus: Number of GPUs.
        model: Their model; None without GPUs.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: GpuModel | None


def alike(count: int, gpus: int, model: str) -> list[SimulatedNode]:
    """Nodes of one kind; names follow the kind, so asking for more adds to those there are.

    Args:
        count: How many.
        gpus: GPUs on each; 0 makes CPU nodes.
        model: Their model, as in `model.gpus`.

    Raises:
        LocalClusterError: A number is out of range or the model is not known.
    """
    if not 0 <= count <= 10_000:
        raise LocalClusterError(f"{count} nodes cannot be simulated: ask for 0 to 10000")
    if not 0 <= gpus <= _MOST_GPUS:
        raise LocalClusterError(f"a node cannot have {gpus} GPUs: ask for 0 to {_MOST_GPUS}")
    known = _model(model) if gpus else None
    prefix = f"{known.name.lower()}x{gpus}" if known else "cpu"
    size = max(gpus, 1)
    return [
        SimulatedNode(
            f"{prefix}-{index:04d}", size * _CPU_PER_GPU, size * _MEMORY_PER_GPU, gpus, known
        )
        for index in range(count)
    ]


def read(path: Path) -> list[SimulatedNode]:
    """Reads a node list: a CSV file, plain or .gz, with the columns of COLUMNS in any order.

    Raises:
        LocalClusterError: The file cannot be read or something in it is wrong; says where.
    """
    try:
        with _open(path) as file:
            return list(_rows(csv.reader(file, strict=True), path))
    except OSError as error:
        reason = error.strerror or str(error)
        raise LocalClusterError(f"node list {path} cannot be read: {reason}") from error
    except (UnicodeDecodeError, EOFError, zlib.error, csv.Error) as error:
        raise LocalClusterError(f"node list {path} is no CSV text: {error}") from error


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", newline="", encoding="utf-8")
    return path.open(newline="", encoding="utf-8")


def _rows(reader: "Reader", path: Path) -> Iterator[SimulatedNode]:
    header = [name.strip() for name in next(reader, [])]
    _check_header(header, path)
    seen: dict[str, int] = {}
    for values in reader:
        line = reader.line_num
        if not values:
            continue
        if len(values) != len(header):
            raise LocalClusterError(
                f"{path}, line {line}: {len(values)} values for {len(header)} columns"
            )
        row = _Row(path, line, dict(zip(header, (value.strip() for value in values), strict=True)))
        node = row.node()
        if node.name in seen:
            raise row.error("sn", f"{node.name!r} is on line {seen[node.name]} already")
        seen[node.name] = line
        yield node


def _check_header(header: list[str], path: Path) -> None:
    expected = f"the columns are {','.join(COLUMNS)}"
    for name in header:
        if name not in COLUMNS:
            raise LocalClusterError(f"{path}, line 1: unknown column {name!r}; {expected}")
    for name in COLUMNS:
        if name not in header:
            raise LocalClusterError(f"{path}, line 1: column {name!r} is missing; {expected}")
    if len(header) != len(COLUMNS):
        raise LocalClusterError(f"{path}, line 1: a column is named twice; {expected}")


@dataclass(frozen=True)
class _Row:
    """One line of a node list."""

    path: Path
    line: int
    values: dict[str, str]

    def error(self, column: str, problem: str) -> LocalClusterError:
        return LocalClusterError(f"{self.path}, line {self.line}, column {column!r}: {problem}")

    def node(self) -> SimulatedNode:
        name = self.values["sn"]
        if not _NAME.fullmatch(name):
            raise self.error(
                "sn",
                f"{name!r} is not a node name: use lower-case letters, digits, dashes and dots",
            )
        gpus = self._number("gpu", 0, _MOST_GPUS)
        model = None
        if gpus:
            text = self.values["model"]
            if text not in MODELS:
                raise self.error("model", _unknown(text))
            model = MODELS[text]
        return SimulatedNode(
            name,
            self._number("cpu_milli", 1, 10**9),
            self._number("memory_mib", 1, 10**9),
            gpus,
            model,
        )

    def _number(self, column: str, lowest: int, highest: int) -> int:
        text = self.values[column]
        # Only digits: int() would also take signs, underscores and the digits of other scripts.
        if not re.fullmatch(r"-?[0-9]{1,18}", text):
            raise self.error(column, f"{text!r} is not a whole number")
        number = int(text)
        if number < 0:
            raise self.error(column, f"{number} is negative")
        if not lowest <= number <= highest:
            raise self.error(column, f"{number} is not between {lowest} and {highest}")
        return number


def _model(name: str) -> GpuModel:
    for known, model in MODELS.items():
        if known.lower() == name.lower():
            return model
    raise LocalClusterError(_unknown(name))


def _unknown(name: str) -> str:
    return f"GPU model {name!r} is not known; known are {', '.join(MODELS)}"
