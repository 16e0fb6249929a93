"""`alnair explain`: why a pod is pending and what would help, or what a placed one got."""

import re
from typing import Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions, ask, unreadable
from alnair.cli.failures import expected
from alnair.cli.json_output import json_option, write_json
from alnair.cli.option_groups import grouped

#: What can be the name of a pod or a namespace.
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")


@grouped
def explain(
    *,
    pod: Annotated[str, typer.Argument(metavar="POD", help="The pod, as pod/NAME or NAME.")],
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace", "-n", metavar="NS", help="Its namespace; default that of the context."
        ),
    ] = None,
    cluster: ClusterOptions,
    offline: Annotated[
        bool,
        typer.Option("--offline", help="Compute it from the API objects, ask no scheduler."),
    ] = False,
    json: Annotated[bool, json_option("the answer")] = False,
) -> None:
    """Say why a pod is pending and what would let it fit, or what a placed one got.

    The scheduler that leads is asked; if it cannot be reached, or the pod is another scheduler's,
    the same code decides on what the API server says. A change, or a pair where no single one
    helps, is named only if the decision was made again with it and the pod fits. Of a pod that has
    a node it tells the GPUs, and the next best node as things are now.

    Ends with 0 if there is an answer, 1 if there is no such pod, 2 on wrong usage, 3 if the cluster
    cannot be read.

    Examples:
      alnair explain pod/trainer-0 -n team-a
      alnair explain trainer-0 --json
    """
    from alnair.cli.text.explanation import render
    from alnair.live.explaining import ExplainError, explain

    kind, slash, bare = pod.partition("/")
    wanted = bare if slash else kind
    if (slash and kind not in ("pod", "pods", "po")) or not _NAME.fullmatch(wanted):
        raise typer.BadParameter(f"{pod!r} is no pod: write pod/NAME", param_hint="POD")
    if namespace is not None and not _NAME.fullmatch(namespace):
        raise typer.BadParameter(f"{namespace!r} is no namespace", param_hint="--namespace")
    with unreadable(), expected(ExplainError):
        found = cluster.connection()
        space = namespace or found.namespace
        diagnosis = ask(found, "explain", lambda c: explain(c, space, wanted, offline=offline))
    if json:
        write_json(diagnosis)
    else:
        typer.echo(render(diagnosis))
