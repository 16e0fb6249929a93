"""`alnair restore`: a cluster has again what a backup holds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from alnair.cli.cluster_selection import ClusterOptions, ask, unreadable
from alnair.cli.failures import FAILED, USAGE, expected
from alnair.cli.interrupted import saying
from alnair.cli.json_output import json_option, write_json
from alnair.cli.option_groups import grouped

if TYPE_CHECKING:
    from alnair.kube.client import Client
    from alnair.live.backup.restoring import Fate


@grouped
def restore(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What 'alnair backup' wrote.")],
    cluster: ClusterOptions,
    existing: Annotated[
        Literal["keep", "update"],
        typer.Option(help="What is there and differs: keep it, or make it as in the backup."),
    ] = "keep",
    create_namespaces: Annotated[
        bool, typer.Option("--create-namespaces", help="Make namespaces that are missing.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Have the API server try all, and write nothing.")
    ] = False,
    json: Annotated[bool, json_option("what became of each object")] = False,
) -> None:
    """Make what a backup holds and the cluster lacks.

    The file is read whole, and the API server tries each object, before anything is written; if it
    refuses one, all are refused. Nothing is ever deleted, so it can be done again and again, and an
    interrupted restore is finished by another one.

    Ends with 0 if it is done, 1 if the cluster cannot take it, 2 if the file cannot be used, 3 if
    the cluster cannot be reached.

    Examples:
      alnair restore alnair-backup.json --dry-run
      alnair restore alnair-backup.json --create-namespaces
      alnair restore alnair-backup.json --existing update --json
    """
    from alnair.configuration.strict_yaml import DocumentError
    from alnair.live.backup import document, restoring

    with expected(OSError, DocumentError, code=USAGE, prefix=f"error: {file}: "):
        backup = document.decode(file.read_bytes())
    wish = restoring.Wish(existing == "update", create_namespaces, dry_run)

    far = "nothing was written"

    def tell(done: int, total: int) -> None:
        nonlocal far
        far = f"{done} of {total} are written and stay: the same command writes the rest"

    async def work(client: "Client") -> "dict[Fate, list[str]]":
        return await restoring.restore(client, backup, wish, tell)

    with (
        expected(restoring.RefusedError, code=FAILED, prefix="error: "),
        unreadable(),
        saying(lambda: f"; {far}"),
    ):
        found = ask(cluster.connection(), "restore", work)
    if json:
        write_json({"dry_run": dry_run, "objects": found})
        return
    would = "would be " if dry_run else ""
    words: dict[Fate, str] = {
        "created": f"{would}created",
        "updated": f"{would}updated",
        "kept": "kept, though it differs (--existing update)",
        "left out": "left out: there is no such node or namespace",
    }
    for fate, said in words.items():
        for called in found.get(fate, []):
            typer.echo(f"{called}: {said}")
    typer.echo(f"as in the backup already: {len(found.get('unchanged', []))}")
