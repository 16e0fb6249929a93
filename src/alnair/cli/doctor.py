"""`alnair doctor`: is all there that Alnair needs, and what mends it if not?"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.agent.slice_options import DEFAULT_FOLDER
from alnair.cli.cluster_selection import ClusterOptions, ask, unreadable
from alnair.cli.failures import FAILED
from alnair.cli.json_output import json_option, write_json
from alnair.cli.option_groups import grouped

if TYPE_CHECKING:
    from alnair.cli.progress import Display
    from alnair.doctor.finding import Found
    from alnair.kube.access.connection import Connection
    from alnair.kube.client import Client


@grouped
def doctor(
    *,
    cluster: ClusterOptions,
    in_cluster: Annotated[
        bool, typer.Option("--in-cluster", help="The cluster is the one that this pod runs in.")
    ] = False,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART",
            help="Left out on purpose: scheduler, controller, agent or admission; repeatable.",
        ),
    ] = None,
    node: Annotated[
        bool, typer.Option("--node", help="Look at this node instead; in the agent's container.")
    ] = False,
    kubelet: Annotated[
        Path, typer.Option(metavar="DIR", help="With --node: the kubelet's folder.")
    ] = Path("/var/lib/kubelet"),
    folder: Annotated[
        Path, typer.Option(metavar="DIR", help="With --node: the agent's folder.")
    ] = DEFAULT_FOLDER,
    driver_libraries: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="With --node: as the agent was told; default as usual."),
    ] = None,
    json: Annotated[bool, json_option("the result")] = False,
) -> None:
    """Look whether all is there that Alnair needs, and say what mends what is not.

    It changes nothing. Of the cluster it asks for versions, custom resources, admission policies,
    rights, clocks, leaders, agents, and device plugins in each other's way; what it may not ask is
    a warning. With --node it looks at the driver, control groups, the container runtime, the
    kubelet and our own library where it runs. All checks: docs/reference/doctor.md.

    Ends with 0 if nothing is an error, 1 if something is, 2 on wrong usage, 3 if the cluster cannot
    be reached.

    Examples:
      alnair doctor
      alnair doctor --without agent
      alnair doctor --json | jq '.findings[] | select(.level != "ok")'
      kubectl -n alnair-system exec ds/alnair-agent -- alnair doctor --node
    """
    from alnair.cli.progress import Display
    from alnair.doctor.run import is_well

    if node and (cluster.are_given or in_cluster or without):
        raise typer.BadParameter("it looks at this node, and asks no cluster", param_hint="--node")
    found = []
    with Display() as display:
        found = (
            _of_node(display, kubelet, folder, driver_libraries, quiet=json)
            if node
            else _of_cluster(display, cluster, without or [], in_cluster=in_cluster, quiet=json)
        )
    well = is_well(found)
    if json:
        write_json({"ok": well, "findings": [_flat(one) for one in found]})
    else:
        typer.echo(_summary(found))
    if not well:
        raise typer.Exit(FAILED)


def _of_cluster(
    display: "Display",
    cluster: ClusterOptions,
    without: "list[str]",
    *,
    in_cluster: bool,
    quiet: bool,
) -> "list[Found]":
    from alnair.doctor import run
    from alnair.doctor.cluster.look import PARTS

    if unknown := [part for part in without if part not in PARTS]:
        known = ", ".join(PARTS)
        raise typer.BadParameter(f"{unknown[0]!r} is none of {known}", param_hint="--without")

    async def look(client: "Client") -> "list[Found]":
        return await _told(run.of_cluster(client, display.progress, without=without), quiet=quiet)

    with unreadable():
        return ask(_connection(cluster, in_cluster=in_cluster), "doctor", look)


def _connection(cluster: ClusterOptions, *, in_cluster: bool) -> "Connection":
    from alnair.kube.access import client_config

    if in_cluster and cluster.are_given:
        raise typer.BadParameter("another option says which", param_hint="--in-cluster")
    return client_config.in_cluster() if in_cluster else cluster.connection()


def _of_node(
    display: "Display", kubelet: Path, folder: Path, libraries: Path | None, *, quiet: bool
) -> "list[Found]":
    import asyncio

    from alnair.doctor import run
    from alnair.doctor.node.look import look_at

    look = look_at(kubelet, folder, libraries)
    return asyncio.run(_told(run.of_node(look, display.progress), quiet=quiet))


async def _told(findings: "AsyncIterator[Found]", *, quiet: bool) -> "list[Found]":
    """All of them; each is shown as it is found."""
    from alnair.cli.text.findings import line

    every = []
    async for one in findings:
        every.append(one)
        if not quiet:
            typer.echo(line(one))
    return every


def _flat(one: "Found") -> dict[str, str]:
    it = one.finding
    return {
        "level": it.level.value,
        "check": one.check,
        "what": it.what,
        "where": it.where,
        "fix": it.fix,
    }


def _summary(found: "list[Found]") -> str:
    from alnair.cli.text.findings import summary

    return summary(found)
