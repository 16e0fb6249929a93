"""`alnair history show`: all that is known of a job."""

from typing import Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions
from alnair.cli.failures import fail
from alnair.cli.history.source import HistoryUrl, job
from alnair.cli.json_output import json_option, write_json
from alnair.cli.option_groups import grouped


@grouped
def show(
    *,
    wanted: Annotated[
        str,
        typer.Argument(metavar="NAMESPACE/KIND/NAME", help="The job, as 'alnair history' has it."),
    ],
    url: HistoryUrl = "",
    cluster: ClusterOptions,
    json: Annotated[bool, json_option("the job")] = False,
) -> None:
    """Show all that is known of a job: its times, its pods, what they used, what was found.

    Of several of one name it is the newest.

    Ends with 0, 1 if there is no such job, 2 on wrong usage, 3 if the history cannot be read.

    Examples:
      alnair history show team-a/Job/train-7
      alnair history show team-a/pytorchjob/llama --json
    """
    namespace, _, rest = wanted.partition("/")
    kind, _, own = rest.partition("/")
    if not namespace or not kind or not own or "/" in own:
        raise typer.BadParameter(
            f"{wanted!r} is no job: write NAMESPACE/KIND/NAME, such as team-a/Job/train-7",
            param_hint="NAMESPACE/KIND/NAME",
        )
    found = job(url, cluster, (namespace, kind, own))
    if found is None:
        fail(f"{wanted}: there is no such job in the history")
    if json:
        write_json(found)
        return
    from alnair.cli.text import history as text
    from alnair.cli.text.console import console

    text.show_job(found, console())
