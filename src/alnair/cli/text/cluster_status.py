"""The state of a local cluster for people to read."""

import shlex
import shutil

from rich.console import Console
from rich.table import Table

from alnair.local.status import ClusterStatus
from alnair.model.plurals import counted


def how_to_use(result: ClusterStatus) -> str:
    """Return what to do with a cluster that is up."""
    if shutil.which("kubectl"):
        kubectl = "kubectl get nodes"
    else:
        kubectl = "(there is no kubectl on PATH; any version from 1.35 to 1.37 works)"
    option = "" if result.name == "alnair" else f" --name {result.name}"
    return (
        f"cluster {result.name} is up at {result.server}, with "
        f"{counted(result.nodes or 0, 'node')}\n\n"
        f"  export KUBECONFIG={shlex.quote(result.kubeconfig)}\n"
        f"  {kubectl}\n\n"
        f"See how it is: alnair status{option}    stop it: alnair down{option}"
        + "".join(f"\n\n{note}" for note in result.notes)
    )


def show(result: ClusterStatus, console: Console) -> None:
    """Print the components, and how many nodes and pods there are."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("COMPONENT", "HEALTH", "VERSION", "PID", "PORT", "UP", "CPU", "MEMORY"):
        # In a narrow terminal, names go on in the next line; what is short does not.
        table.add_column(
            column,
            justify="right" if column in {"CPU", "MEMORY"} else "left",
            no_wrap=column not in {"COMPONENT", "HEALTH"},
            overflow="fold",
        )
    for one in result.components:
        table.add_row(
            one.name,
            "[green]ok[/green]" if one.healthy else f"[red]{one.problem}[/red]",
            one.version,
            str(one.pid or ""),
            str(one.port or ""),
            _duration(one.uptime_seconds),
            "" if one.cpu_seconds is None else f"{one.cpu_seconds:.1f} s",
            "" if one.memory_mib is None else f"{one.memory_mib} MiB",
        )
    console.print(table)
    counts = "unknown"
    if result.nodes is not None:
        counts = f"{counted(result.nodes, 'node')}, {counted(result.pods or 0, 'pod')}"
    console.print(f"\n{result.server}  {counts}\nkubeconfig: {result.kubeconfig}", soft_wrap=True)
    for note in result.notes:
        console.print(f"\n{note}", soft_wrap=True, markup=False)


def _duration(seconds: int | None) -> str:
    if seconds is None:
        return ""
    if seconds < 120:
        return f"{seconds}s"
    if seconds < 7200:
        return f"{seconds // 60}m"
    return f"{seconds // 3600}h"
