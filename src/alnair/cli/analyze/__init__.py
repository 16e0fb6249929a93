"""`alnair analyze`: what files of samples and logs tell of a job."""

import typer

from alnair.cli.analyze.log import log
from alnair.cli.analyze.series import series

app = typer.Typer(no_args_is_help=True)


@app.callback()
def analyze() -> None:
    """Tell what samples and logs of a job mean, from files; no cluster is asked."""


app.command("log")(log)
app.command("series")(series)
