"""`alnair history show`: all that is known of a job."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions
from alnair.cli.failures import fail
from alnair.cli.history.source import HistoryUrl, job, jobs
from alnair.cli.json_output import json_option, write_json
from alnair.cli.option_groups import grouped

if TYPE_CHECKING:
    from alnair.history.database.queries import Job


@grouped
def show(
    *,
    wanted: Annotated[
        str,
        typer.Argument(
            metavar="JOB", help="NAMESPACE/KIND/NAME, as 'alnair history' has it, or a name."
        ),
    ],
    url: HistoryUrl = "",
    cluster: ClusterOptions,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", metavar="NS", help="Of this namespace.")
    ] = None,
    json: Annotated[bool, json_option("the job")] = False,
) -> None:
    """Show all that is known of a job: its times, its pods, what they used, what was found.

    Of several of one name it is the newest. A name alone, or KIND/NAME, will do where only one
    namespace and kind has it.

    Ends with 0, 1 if there is no such job, 2 on wrong usage, 3 if the history cannot be read.

    Examples:
      alnair history show train-7
      alnair history show job/train-7 -n team-a
      alnair history show team-a/pytorchjob/llama --json
    """
    parts = _parts(wanted, namespace)
    if not all(parts):
        parts = _only(wanted, jobs(url, cluster, _query(parts[0], parts[2])), parts[1])
    found = job(url, cluster, parts)
    if found is None:
        fail(f"{wanted}: there is no such job in the history")
    if json:
        write_json(found)
        return
    from alnair.cli.text import history as text
    from alnair.cli.text.console import console

    text.show_job(found, console(wide=True), time.time())


def _parts(wanted: str, namespace: str | None) -> tuple[str, str, str]:
    """Return namespace, kind and name; what was not said is empty."""
    parts = wanted.split("/")
    if not all(parts) or len(parts) > 3 or (namespace and len(parts) > 2):
        raise typer.BadParameter(
            f"{wanted!r} is no job: write NAMESPACE/KIND/NAME, such as team-a/Job/train-7, or"
            " KIND/NAME or NAME, with -n or without",
            param_hint="JOB",
        )
    own, kind, space = [*reversed(parts), "", ""][:3]
    return space or namespace or "", kind, own


def _query(namespace: str, own: str) -> dict[str, str]:
    # Kinds are told apart below: people write them in any case.
    query = {"name": own, "limit": "1000"}
    return {**query, "namespace": namespace} if namespace else query


def _only(wanted: str, found: "list[Job]", kind: str) -> tuple[str, str, str]:
    """Return the namespace, kind and name that are meant; ends with 1 or 2 if none or many are."""
    known = sorted(
        {
            (one.namespace, one.kind, one.name)
            for one in found
            if not kind or one.kind.lower() == kind.lower()
        }
    )
    if not known:
        fail(f"{wanted}: there is no such job in the history")
    if len(known) > 1:
        names = ", ".join("/".join(one) for one in known[:5]) + (", …" if len(known) > 5 else "")
        raise typer.BadParameter(f"{wanted!r} may be {names}: name one", param_hint="JOB")
    return known[0]
