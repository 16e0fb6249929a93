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

        asyncio.run(LocalCluster(name, report=display).down(keep_data=keep_data))
    typer.echo(f"cluster {name} is down" + (", its data is kept" if keep_data else ""))
