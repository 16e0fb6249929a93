"""`alnair backup`: what people have told Alnair in a cluster, as a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions, ask, unreadable
from alnair.cli.failures import expected
from alnair.cli.json_output import json_option, write_json
from alnair.cli.option_groups import grouped
from alnair.model.plurals import counted

if TYPE_CHECKING:
    from alnair.kube.client import Client
    from alnair.live.backup.taking import Taken


@grouped
def backup(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it, as JSON.")],
    cluster: ClusterOptions,
    json: Annotated[bool, json_option("what is in it")] = False,
) -> None:
    """Write PodGroups, ElasticQuotas and opt-in labels of nodes and namespaces to a file.

    It is what nothing else could make anew. Neither pods, nor values of the chart, nor what Alnair
    derives (plans of gangs, status, what agents found) is in it, nor what a controller made and
    makes again. The cluster is only read. What to keep beside it: docs/how-to/back-up.md.

    Ends with 0 if it is written, 1 if not, 3 if the cluster cannot be read.

    Examples:
      alnair backup alnair-backup.json
      alnair backup --kubeconfig prod.kubeconfig prod.json
    """
    import datetime as dt

    from alnair.history import atomic_file
    from alnair.live.backup import document, taking

    if not file.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {file.parent}: make it", param_hint="FILE")
    with unreadable():
        connection = cluster.connection()

        async def look(client: "Client") -> "Taken":
            return await taking.take(client, connection.server, dt.datetime.now(dt.UTC))

        taken = ask(connection, "backup", look)
    with expected(OSError):
        atomic_file.write(file, document.encode(taken.backup))
    counts = {
        "objects": len(taken.backup.objects),
        "labels": len(taken.backup.labels),
        "owned": len(taken.owned),
    }
    if json:
        write_json({"file": str(file), **counts, "absent": taken.absent})
        return
    typer.echo(
        f"{file}: {counts['objects']} PodGroups and ElasticQuotas, "
        f"{counted(counts['labels'], 'label')}"
        " of nodes and namespaces"
    )
    if taken.owned:
        typer.echo(f"left out: {len(taken.owned)} that controllers own, and make again")
    if taken.absent:
        typer.echo(f"the cluster does not have: {', '.join(taken.absent)}")
