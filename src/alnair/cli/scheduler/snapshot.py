"""`alnair scheduler snapshot`: what the leading scheduler knows, as a file."""

from pathlib import Path
from typing import Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions
from alnair.cli.failures import expected, fail
from alnair.cli.option_groups import grouped
from alnair.model.plurals import counted


@grouped
def snapshot(
    *,
    file: Annotated[Path, typer.Argument(help="Where to save it.")],
    url: Annotated[
        str | None,
        typer.Option(help="Where the scheduler serves; by default what its lease says."),
    ] = None,
    cluster: ClusterOptions,
    lease_name: Annotated[str, typer.Option(help="Name of the lease.")] = "alnair-scheduler",
) -> None:
    """Save what the leading scheduler knows, to decide again on it elsewhere.

    Examples:
      alnair scheduler snapshot pending.json.gz
      alnair scheduler snapshot pending.json.gz --name mine
      alnair scheduler snapshot pending.json.gz --url http://127.0.0.1:10260
    """
    import asyncio

    from alnair.kube.errors import KubeError
    from alnair.live.snapshot_download import FetchError, fetch
    from alnair.local.errors import LocalClusterError
    from alnair.snapshots.snapshot import SnapshotError
    from alnair.snapshots.snapshot_profiles import decode

    with expected(FetchError, KubeError, LocalClusterError, prefix="error: "):
        data = asyncio.run(fetch(url, cluster.connection, lease_name))
    with expected(SnapshotError, prefix="error: ", before="what the scheduler answered "):
        taken = decode(data)
    try:
        file.write_bytes(data)
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror or error}", prefix="error: ")
    waiting = sum(not pod.node for pod in taken.pods)
    typer.echo(
        f"{file}: {counted(len(taken.nodes), 'node')}, {counted(len(taken.pods), 'pod')}, "
        f"{waiting} of them wait"
    )
