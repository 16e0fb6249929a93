"""`alnair explain`: why a pod is pending and what would help, or what a placed one got."""

import re
from collections.abc import Sequence
from typing import Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions, ask, unreadable
from alnair.cli.failures import expected
from alnair.cli.json_output import json_option, write_json
from alnair.cli.option_groups import grouped

#: What can be the name of a pod or a namespace.
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
#: What can be the name of a kind: `job`, `Job`, `jobs.batch`, `jobs.v1.batch`.
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]*(\.[-.a-z0-9]+)?")
_PODS = ("pod", "pods", "po")


@grouped
def explain(
    *,
    wanted: Annotated[
        list[str],
        typer.Argument(
            metavar="POD", help="The pod, as NAME, or what made it, as KIND/NAME or KIND NAME."
        ),
    ],
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

    Of what makes pods, such as job/NAME, deploy/NAME, statefulset/NAME, ehj/NAME or podgroup/NAME,
    it is the first pod that has no node, or else the first one.

    The scheduler that leads is asked; if it cannot be reached, or the pod is another scheduler's,
    the same code decides on what the API server says. A change, or a pair where no single one
    helps, is named only if the decision was made again with it and the pod fits. Of a pod that has
    a node it tells the GPUs, the next best node as things are now, and why its containers do not
    run.

    Ends with 0 if there is an answer, 1 if there is no such pod, 2 on wrong usage, 3 if the cluster
    cannot be read.

    Examples:
      alnair explain pod/trainer-0 -n team-a
      alnair explain job/train-7
      alnair explain trainer-0 --json
    """
    from alnair.cli.text.explanation import render
    from alnair.live.explaining import ExplainError, explain, explain_workload
    from alnair.live.workload_pods import WorkloadError

    kind, name = _named(wanted)
    if namespace is not None and not _NAME.fullmatch(namespace):
        raise typer.BadParameter(f"{namespace!r} is no namespace", param_hint="--namespace")
    with unreadable(), expected(ExplainError, WorkloadError):
        found = cluster.connection()
        space = namespace or found.namespace
        if kind in _PODS:
            diagnosis = ask(found, "explain", lambda c: explain(c, space, name, offline=offline))
        else:
            diagnosis = ask(
                found, "explain", lambda c: explain_workload(c, space, kind, name, offline=offline)
            )
    if json:
        write_json(diagnosis)
    else:
        typer.echo(render(diagnosis))


def _named(wanted: Sequence[str]) -> tuple[str, str]:
    """Return the kind and the name that are meant."""
    parts = [part for word in wanted for part in word.split("/")]
    kind, name = parts if len(parts) == 2 else ("pod", parts[0])
    if len(parts) > 2 or not _NAME.fullmatch(name) or not _KIND.fullmatch(kind):
        text = " ".join(wanted)
        raise typer.BadParameter(
            f"{text!r} is no pod: write NAME, pod/NAME, or KIND/NAME of what made it, such as"
            " job/NAME",
            param_hint="POD",
        )
    return kind.lower(), name
