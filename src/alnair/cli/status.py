"""`alnair status`: how a local cluster is, and Alnair as it is installed in any cluster."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.cluster_selection import ask, connection, local_name, unreadable
from alnair.cli.failures import FAILED, fail
from alnair.cli.json_output import json_option, write_json
from alnair.cli.local_clusters import reporting

if TYPE_CHECKING:
    from alnair.kube.access.connection import Connection
    from alnair.live.installed import InstalledComponent


def status(
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Local cluster; default alnair.")
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Kubeconfig of any cluster instead.")
    ] = None,
    context: Annotated[
        str | None, typer.Option(metavar="NAME", help="Context of the kubeconfig.")
    ] = None,
    json: Annotated[bool, json_option("the result")] = False,
) -> None:
    """Show how Alnair is: its pods, and of a local cluster its processes, nodes and pods.

    Of each component that is installed as pods: how many are ready, of which version, and which
    one leads. Without options it is the cluster of $KUBECONFIG, else the local cluster 'alnair'.

    Ends with 0 if all is well, 1 if something is not, 3 if the cluster cannot be read.

    Examples:
      alnair status

      alnair status --kubeconfig prod.kubeconfig

      alnair status --json | jq .healthy
    """
    with unreadable(before=""):
        local = local_name(name, kubeconfig, context)
    if local is None:
        with unreadable():
            _of_any(connection(kubeconfig, context, name), json=json)
        return
    with reporting():
        import asyncio

        from alnair.kube.access import client_config
        from alnair.local import status as of_local
        from alnair.local.controlplane import LocalCluster

        cluster = LocalCluster(local)
        result = asyncio.run(of_local.status(cluster))
        # Without an answer of the API server nobody can tell what is installed.
        found = _installed(client_config.load(cluster.kubeconfig())) if result.answers else []
    healthy = result.healthy and not any(one.problem for one in found)
    if json:
        import msgspec

        write_json(msgspec.to_builtins(result) | {"healthy": healthy, "installed": found})
    else:
        from alnair.cli.text import cluster_status, installed_components
        from alnair.cli.text.console import console

        cluster_status.show(result, console(wide=True))
        installed_components.show(found, console(wide=True))
    if not healthy:
        raise typer.Exit(FAILED)


def _of_any(connection: "Connection", *, json: bool) -> None:
    """Show what is installed in a cluster of which nothing else is known."""
    found = _installed(connection)
    healthy = bool(found) and not any(one.problem for one in found)
    if json:
        write_json({"healthy": healthy, "server": connection.server, "installed": found})
    elif found:
        from alnair.cli.text import installed_components
        from alnair.cli.text.console import console

        installed_components.show(found, console(wide=True))
    if not found:
        fail(
            f"Alnair is not installed as pods in {connection.server}: docs/how-to/install.md, or"
            " 'alnair doctor' for what else is there"
        )
    if not healthy:
        raise typer.Exit(FAILED)


def _installed(connection: "Connection") -> "list[InstalledComponent]":
    from alnair.live.installed import installed

    return ask(connection, "status", installed)
