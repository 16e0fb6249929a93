"""`alnair up`, `alnair status`, `alnair down`: a real Kubernetes cluster on this machine."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from alnair.cli.progress import Display
    from alnair.local.status import ClusterStatus
    from alnair.traces.openb import TraceNode

Name = Annotated[
    str, typer.Option("--name", "-n", metavar="NAME", help="Which cluster; each has its own ports.")
]
Json = Annotated[bool, typer.Option("--json", help="Write the result as one line of JSON.")]


def up(
    name: Name = "alnair",
    nodes: Annotated[
        int | None, typer.Option(min=0, max=10_000, metavar="N", help="Simulate N GPU nodes alike.")
    ] = None,
    gpus_per_node: Annotated[
        int, typer.Option(min=0, max=64, metavar="G", help="GPUs on each of them; 0: CPU nodes.")
    ] = 8,
    gpu_model: Annotated[
        str, typer.Option(metavar="MODEL", help="Their model, such as T4, A100 or H100.")
    ] = "A100",
    nodes_from: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Simulate the nodes of a CSV file (sn,cpu_milli,memory_mib,gpu,model; .gz too).",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=1024, max=65535, metavar="PORT", help="The API server's port; else a free one."
        ),
    ] = None,
    scheduler: Annotated[
        bool | None,
        typer.Option("--scheduler/--no-scheduler", help="Run alnair scheduler and controller too."),
    ] = None,
    components: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Run only these; etcd and kube-apiserver always do."),
    ] = None,
    json: Json = False,
) -> None:
    """Start a real Kubernetes cluster on this machine, or repair and extend it.

    etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok run as processes of
    yours; no Docker, no root. The first start builds them (about 6 minutes), later ones take
    seconds. GPU nodes are simulated: real objects in the API; pods on them become Running, but no
    container runs.

    Examples:
      alnair up --nodes 4 --gpus-per-node 8 --gpu-model A100
      alnair up --nodes-from openb_node_list_gpu_node.csv --scheduler
      alnair up --name two --port 6443
    """
    with _reporting() as display:
        import asyncio

        from alnair.local import nodelist
        from alnair.local.controlplane import LocalCluster

        listed: list[TraceNode] = []
        if nodes_from is not None:
            listed += nodelist.read(nodes_from)
        if nodes is not None:
            listed += nodelist.alike(nodes, gpus_per_node, gpu_model)
        cluster = LocalCluster(
            name,
            components=components.split(",") if components is not None else None,
            scheduler=scheduler,
            port=port,
            report=display,
        )
        cluster.prepare()

        async def run() -> "ClusterStatus":
            from alnair.local.status import status

            await cluster.up()
            await cluster.add_nodes(listed)
            return await status(cluster)

        result = asyncio.run(run())
    if json:
        _write_json(result)
    else:
        _hint(result)
    _exit_by(result)


def status(name: Name = "alnair", json: Json = False) -> None:
    """Show the cluster's components, nodes and pods; ends with 1 if something is not well.

    Examples:
      alnair status

      alnair status --json | jq .healthy
    """
    with _reporting():
        import asyncio

        from alnair.local import status as local
        from alnair.local.controlplane import LocalCluster

        result = asyncio.run(local.status(LocalCluster(name)))
    if json:
        _write_json(result)
    else:
        _table(result)
    _exit_by(result)


def down(
    name: Name = "alnair",
    keep_data: Annotated[
        bool, typer.Option("--keep-data", help="Keep all objects for the next 'alnair up'.")
    ] = False,
) -> None:
    """Stop the cluster: no process and no open port is left, and its data is removed.

    Examples:
      alnair down

      alnair down --name two --keep-data
    """
    with _reporting() as display:
        import asyncio

        from alnair.local.controlplane import LocalCluster

        asyncio.run(LocalCluster(name, report=display).down(keep_data=keep_data))
    typer.echo(f"cluster {name} is down" + (", its data is kept" if keep_data else ""))


@contextlib.contextmanager
def _reporting() -> Iterator["Display"]:
    """Shows what is going on, and turns an expected failure into its sentence and exit code 1."""
    try:
        from alnair.cli.progress import Display
        from alnair.kube.errors import KubeError
        from alnair.local.errors import InvalidArgumentError, LocalClusterError
    except ModuleNotFoundError as error:
        typer.echo(f"alnair: {error.name} is missing: run  pip install 'alnair[local]'", err=True)
        raise typer.Exit(1) from None
    try:
        with Display() as display:
            yield display
    except (LocalClusterError, KubeError, OSError) as error:
        typer.echo(f"alnair: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, InvalidArgumentError) else 1) from None
    except KeyboardInterrupt:
        typer.echo("alnair: interrupted; the same command goes on from here", err=True)
        raise typer.Exit(130) from None


def _write_json(result: "ClusterStatus") -> None:
    import msgspec

    typer.echo(msgspec.json.encode(result).decode())


def _exit_by(result: "ClusterStatus") -> None:
    if not result.healthy:
        raise typer.Exit(1)


def _hint(result: "ClusterStatus") -> None:
    """Says how to use the cluster."""
    import shlex
    import shutil

    typer.echo(f"cluster {result.name} is up at {result.server}, with {result.nodes} nodes")
    typer.echo(f"\n  export KUBECONFIG={shlex.quote(result.kubeconfig)}")
    if shutil.which("kubectl"):
        typer.echo("  kubectl get nodes")
    else:
        typer.echo("  (there is no kubectl on PATH; any version from 1.35 to 1.37 works)")
    option = "" if result.name == "alnair" else f" --name {result.name}"
    typer.echo(f"\nSee how it is: alnair status{option}    stop it: alnair down{option}")


def _table(result: "ClusterStatus") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("COMPONENT", "HEALTH", "VERSION", "PID", "PORT", "UP", "CPU", "MEMORY"):
        table.add_column(column, justify="right" if column in {"CPU", "MEMORY"} else "left")
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
    console = Console(file=sys.stdout, highlight=False)
    console.print(table)
    counts = "unknown" if result.nodes is None else f"{result.nodes} nodes, {result.pods} pods"
    console.print(f"\n{result.server}  {counts}\nkubeconfig: {result.kubeconfig}", soft_wrap=True)


def _duration(seconds: int | None) -> str:
    if seconds is None:
        return ""
    if seconds < 120:
        return f"{seconds}s"
    if seconds < 7200:
        return f"{seconds // 60}m"
    return f"{seconds // 3600}h"
