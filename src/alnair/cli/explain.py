"""`alnair explain`: why a pod is pending, and what would help."""

import asyncio
import re
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.connect import ContextOption, KubeconfigOption

if TYPE_CHECKING:
    from alnair.kube.connection import Connection
    from alnair.scheduler.advice.diagnosis import Diagnosis

#: Exit codes: there is nothing to explain; the cluster cannot be read.
UNKNOWN = 1
UNREADABLE = 3

#: What can be the name of a pod or a namespace.
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")


def explain(
    pod: Annotated[str, typer.Argument(metavar="POD", help="The pod, as pod/NAME or NAME.")],
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace", "-n", metavar="NS", help="Its namespace; default that of the context."
        ),
    ] = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Local cluster (see 'alnair up')."),
    ] = None,
    offline: Annotated[
        bool,
        typer.Option("--offline", help="Compute it from the API objects, ask no scheduler."),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Write the answer as one line of JSON.")
    ] = False,
) -> None:
    """Say why a pod is pending, which nodes are closest, and which change would let it fit.

    The scheduler that leads is asked; if it cannot be reached, or the pod is another scheduler's,
    the same code decides on what the API server says. A change is named only if the decision was
    made again with it and the pod fits.

    Ends with 0 if there is an answer, 1 if there is no such pod, 2 on wrong usage, 3 if the cluster
    cannot be read.

    Examples:
      alnair explain pod/trainer-0 -n team-a
      alnair explain trainer-0 --json
    """
    import msgspec

    from alnair.cli.connect import connection
    from alnair.cli.text.explanation import render
    from alnair.kube.errors import KubeError
    from alnair.live.explaining import ExplainError
    from alnair.local.errors import LocalClusterError

    kind, slash, bare = pod.partition("/")
    wanted = bare if slash else kind
    if (slash and kind not in ("pod", "pods", "po")) or not _NAME.fullmatch(wanted):
        raise typer.BadParameter(f"{pod!r} is no pod: write pod/NAME", param_hint="POD")
    if namespace is not None and not _NAME.fullmatch(namespace):
        raise typer.BadParameter(f"{namespace!r} is no namespace", param_hint="--namespace")
    try:
        found = connection(kubeconfig, context, name)
        told = asyncio.run(_explain(found, namespace or found.namespace, wanted, offline=offline))
    except ExplainError as error:
        typer.echo(f"alnair: {error}", err=True)
        raise typer.Exit(UNKNOWN) from None
    except (KubeError, LocalClusterError, OSError) as error:
        typer.echo(f"alnair: the cluster cannot be read: {error}", err=True)
        raise typer.Exit(UNREADABLE) from None
    typer.echo(msgspec.json.encode(told).decode() if json else render(told))


async def _explain(
    connection: "Connection", namespace: str, name: str, *, offline: bool
) -> "Diagnosis":
    from alnair.kube.client import Client
    from alnair.live.explaining import explain

    async with Client(connection, user_agent="alnair-explain") as client:
        return await explain(client, namespace, name, offline=offline)
