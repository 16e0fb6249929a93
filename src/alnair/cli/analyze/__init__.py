"""`alnair analyze`: what a job's files say of it."""

import typer

from alnair.cli.analyze.log import log

app = typer.Typer(no_args_is_help=True)


@app.callback()
def analyze() -> None:
    """Say what a job's files tell of it."""


app.command("log")(log)
