"""`alnair report`: what became of a cluster's jobs, in figures."""

import typer

from alnair.cli.report.efficiency import efficiency
from alnair.cli.report.scheduling import scheduling

app = typer.Typer(no_args_is_help=True)


@app.callback()
def report() -> None:
    """Report what became of a cluster's jobs."""


app.command("scheduling")(scheduling)
app.command("efficiency")(efficiency)
