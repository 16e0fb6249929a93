"""`alnair scheduler replay`: decides again on a snapshot."""

from pathlib import Path
from typing import Annotated

import typer

from alnair.cli.failures import expected
from alnair.cli.json_output import write_json


def replay(
    file: Annotated[Path, typer.Argument(help="A snapshot.")],
    pod: Annotated[
        str, typer.Option(metavar="NAMESPACE/NAME", help="Decide on this pod, and its gang, alone.")
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="One JSON object per pod.")] = False,
) -> None:
    """Decide again on what a snapshot holds, with the live scheduler's code; touches no cluster.

    The same snapshot gives the same decisions, every time and everywhere.

    Examples:
      alnair scheduler replay pending.json.gz
      alnair scheduler replay pending.json.gz --pod team-a/train-0
    """
    from alnair.cli.text.replayed_decision import lines
    from alnair.configuration.scheduler_file import ConfigurationError
    from alnair.snapshots.replay import replay as decide
    from alnair.snapshots.snapshot import SnapshotError
    from alnair.snapshots.snapshot_profiles import load

    with expected(SnapshotError, ConfigurationError, prefix="error: "):
        outcomes = decide(load(file), str(file), pod)
    for outcome in outcomes:
        if json:
            write_json(outcome)
        else:
            for line in lines(outcome):
                typer.echo(line)
