"""`alnair status`: how a local cluster is."""

from typing import Annotated

from alnair.cli.json_output import json_option, write_json
from alnair.cli.local_clusters import LocalName, exit_by, reporting


def status(
    name: LocalName = "alnair", json: Annotated[bool, json_option("the result")] = False
) -> None:
    """Show the cluster's components, nodes and pods; ends with 1 if something is not well.

    Examples:
      alnair status

      alnair status --json | jq .healthy
    """
    with reporting():
        import asyncio

        from alnair.local import status as local
        from alnair.local.controlplane import LocalCluster

        result = asyncio.run(local.status(LocalCluster(name)))
    if json:
        write_json(result)
    else:
        from alnair.cli.text import cluster_status
        from alnair.cli.text.console import console

        cluster_status.show(result, console())
    exit_by(result)
