"""`alnair down`: stops a local cluster."""

from typing import Annotated

import typer

from alnair.cli.local_clusters import LocalName, reporting


def down(
    name: LocalName = "alnair",
    keep_data: Annotated[
        bool, typer.Option("--keep-data", help="Keep all objects for the next 'alnair up'.")
    ] = False,
) -> None:
    """Stop the cluster: no process and no open port is left, and its data is removed.

    Examples:
      alnair down
      alnair down --name two --keep-data
    """
    with reporting() as display:
        import asyncio

        from alnair.local.controlplane import LocalCluster

        cluster = LocalCluster(name, report=display)
        was_there = cluster.layout.folder.exists() or bool(cluster.running())
        asyncio.run(cluster.down(keep_data=keep_data))
    if was_there:
        typer.echo(f"cluster {name} is down" + (", its data is kept" if keep_data else ""))
        return
    others = sorted(one.parent.name for one in cluster.layout.root.glob("*/state.json"))
    there = f"; there is {', '.join(others)}" if others else ""
    typer.echo(f"there was no cluster {name}{there}")
