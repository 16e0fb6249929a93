"""`alnair agent forget`: takes back what agents wrote about their nodes."""

from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions, ask
from alnair.cli.failures import USAGE, expected
from alnair.cli.json_output import json_option, write_json
from alnair.cli.option_groups import grouped

if TYPE_CHECKING:
    from alnair.kube.client import Client


@grouped
def forget(
    nodes: Annotated[
        list[str] | None, typer.Argument(metavar="[NODE]...", help="Nodes without an agent.")
    ] = None,
    *,
    cluster: ClusterOptions,
    all_: Annotated[
        bool,
        typer.Option("--all", help="All nodes, once the last agent that the chart made has ended."),
    ] = False,
    json: Annotated[bool, json_option("what was removed")] = False,
) -> None:
    """Remove labels, annotations, amounts and objects that agents wrote about nodes.

    For when an agent is gone for good; one that runs writes them again. What others wrote stays.
    'helm uninstall' does this with --all.

    Examples:
      alnair agent forget gpu-7
      alnair agent forget --all
    """
    if bool(nodes) == all_:
        typer.echo("alnair: name nodes, or give --all", err=True)
        raise typer.Exit(USAGE)

    from alnair.kube.errors import KubeError
    from alnair.processes.agent.forgetting import AgentsRunError

    with expected(KubeError, AgentsRunError, OSError):
        removed = ask(cluster.connection(), "forget", lambda client: _forget(client, nodes or []))
    if json:
        write_json(removed)
        return
    for node, what in removed.items():
        typer.echo(f"{node}: removed {', '.join(what) or 'nothing'}")
    if not removed:
        typer.echo("no node has anything of an agent")


async def _forget(client: "Client", nodes: list[str]) -> dict[str, list[str]]:
    from alnair.kube.resources import NODES
    from alnair.processes.agent import forgetting

    if not nodes:
        await forgetting.agents_ended(client)
        found = (await client.list(NODES)).items
        nodes = [node["metadata"]["name"] for node in found if forgetting.knows(node)]
    return {node: await forgetting.forget(client, node) for node in nodes}
