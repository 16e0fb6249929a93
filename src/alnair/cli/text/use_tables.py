"""Tables of what nodes, GPUs, pods and owners do, for people to read."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from alnair.cli.text import job_facts
from alnair.live.usage.use import ClusterUse

#: What is shown where a figure is not known.
_UNKNOWN: Final = "-"


class Column(msgspec.Struct, frozen=True):
    """A column.

    Attributes:
        title: Above it.
        field: Of the row.
        text: Makes text of the value.
        is_number: Set to the right.
    """

    title: str
    field: str
    text: Callable[[Any], str] = str
    is_number: bool = False


def _number(digits: int = 0, unit: str = "") -> Callable[[Any], str]:
    return lambda value: _UNKNOWN if value is None else f"{value:,.{digits}f}{unit}"


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    if value < 120:
        return f"{value:.0f}s"
    return f"{value / 60:.0f}m" if value < 7200 else f"{value / 3600:.1f}h"


def _part(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _names(value: Sequence[str]) -> str:
    return ", ".join(value) if len(value) < 4 else f"{', '.join(value[:3])} and {len(value) - 3}"


_PERCENT: Final = _number(1, " %")
_COLUMNS: Final = {
    "nodes": (
        Column("node", "node"),
        Column("GPUs", "gpus", _number(), is_number=True),
        Column("free", "free", _number(), is_number=True),
        Column("busy", "util", _PERCENT, is_number=True),
        Column("used MiB", "memory_used_mib", _number(), is_number=True),
        Column("of MiB", "memory_mib", _number(), is_number=True),
        Column("pods", "pods", _number(), is_number=True),
        Column("problem", "problem"),
    ),
    "gpus": (
        Column("node", "node"),
        Column("GPU", "index", _number(), is_number=True),
        Column("model", "model"),
        Column("busy", "util", _PERCENT, is_number=True),
        Column("used MiB", "memory_used_mib", _number(), is_number=True),
        Column("of MiB", "memory_mib", _number(), is_number=True),
        Column("pods", "pods", _names),
        Column("problem", "problem"),
    ),
    "pods": (
        Column("namespace", "namespace"),
        Column("pod", "pod"),
        Column("node", "node"),
        Column("GPUs", "gpus", _number(2), is_number=True),
        Column("busy", "util", _PERCENT, is_number=True),
        Column("GPU MiB", "memory_mib", _number(), is_number=True),
        Column("CPUs", "cpu_cores", _number(2), is_number=True),
        Column("MiB", "ram_mib", _number(), is_number=True),
        Column("idle for", "idle_s", _seconds, is_number=True),
        Column("phase", "phase", lambda value: value or ""),
        Column("done", "progress", _part, is_number=True),
        Column("left", "eta_s", _seconds, is_number=True),
        Column("owner", "owner"),
    ),
    "work": (
        Column("namespace", "namespace"),
        Column("pod", "pod"),
        Column("type", "type", lambda value: value or job_facts.UNKNOWN),
        Column("model", "model", job_facts.model_name),
        Column("parameters", "model", job_facts.parameters),
        Column("weights MiB", "model", job_facts.weights),
        Column("input", "input", job_facts.places),
        Column("epoch MiB", "input", job_facts.epoch_mib),
        Column("calls/s", "cuda", job_facts.calls_per_s),
        Column("CUDA calls", "cuda", job_facts.calls),
    ),
    "owners": (
        Column("namespace", "namespace"),
        Column("owner", "owner"),
        Column("pods", "pods", _number(), is_number=True),
        Column("GPUs", "gpus", _number(2), is_number=True),
        Column("used", "used_gpus", _number(2), is_number=True),
        Column("wasted", "wasted_gpus", _number(2), is_number=True),
    ),
}


def titles(view: str) -> list[str]:
    """Return the titles of a view's columns."""
    return [column.title for column in _COLUMNS[view]]


def table(
    use: ClusterUse,
    view: str,
    *,
    sort_by: int | None = None,
    is_reversed: bool = False,
    most: int | None = None,
) -> RenderableType:
    """Return the table of a view.

    Args:
        use: The figures.
        view: nodes, gpus, pods, owners or work.
        sort_by: Column; numbers begin with the largest, what is not known comes last. None: as is.
        is_reversed: The other way round.
        most: Rows that there is room for.
    """
    columns = _COLUMNS[view]
    rows = list(getattr(use, "pods" if view == "work" else view))
    if sort_by is not None:
        rows = _sorted(rows, columns[sort_by], is_reversed)
    # What is known of no row takes no room; the numbers of columns stay for the keys.
    shown = [
        (number, column)
        for number, column in enumerate(columns)
        if not rows or any(column.text(getattr(row, column.field)) for row in rows)
    ]
    made = Table(box=None, pad_edge=False, expand=False)
    for number, column in shown:
        made.add_column(
            Text(column.title, style="bold underline" if number == sort_by else "bold"),
            justify="right" if column.is_number else "left",
            no_wrap=column.is_number,
            # In a narrow terminal, names go on in the next line.
            overflow="fold",
        )
    for row in rows[:most]:
        made.add_row(*(Text(one.text(getattr(row, one.field))) for _, one in shown))
    parts: list[RenderableType] = [made]
    if not rows:
        parts.append(Text(_NOTHING[view]))
    if most is not None and len(rows) > most:
        parts.append(Text(f"and {len(rows) - most} more"))
    return Group(*parts)


_NOTHING: Final = {
    "nodes": "no node says that it has GPUs: an agent describes them",
    "gpus": "no node says that it has GPUs: an agent describes them",
    "pods": "no pod holds a GPU",
    "owners": "no pod holds a GPU",
    "work": "no pod holds a GPU",
}


def _sorted(rows: Iterable[Any], column: Column, is_reversed: bool) -> list[Any]:
    known = [row for row in rows if getattr(row, column.field) is not None]
    unknown = [row for row in rows if getattr(row, column.field) is None]

    def key(row: Any) -> Any:
        value = getattr(row, column.field)
        return column.text(value) if isinstance(value, msgspec.Struct) else value

    known.sort(key=key, reverse=column.is_number != is_reversed)
    return [*known, *unknown]


def show(use: ClusterUse, view: str, console: Console) -> None:
    """Print one view, and what could not be asked."""
    console.print(table(use, view))
    for note in use.notes:
        console.print(Text(f"note: {note}"))
