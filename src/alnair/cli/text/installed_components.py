"""What is installed as pods, for people to read."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from alnair.live.installed import InstalledComponent


def show(found: Sequence[InstalledComponent], console: Console) -> None:
    """Print a line per component; nothing where there is none."""
    if not found:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("INSTALLED", "HEALTH", "READY", "VERSION", "LEADER", "RESTARTS"):
        # In a narrow terminal, names and versions go on in the next line; what is short does not.
        table.add_column(
            column,
            justify="right" if column == "RESTARTS" else "left",
            no_wrap=column in {"READY", "RESTARTS"},
            overflow="fold",
        )
    for one in found:
        table.add_row(
            one.name,
            f"[red]{escape(one.problem)}[/red]" if one.problem else "[green]ok[/green]",
            f"{one.ready}/{one.wanted}",
            ", ".join(one.versions),
            one.leader,
            str(one.restarts),
        )
    console.print(table)
