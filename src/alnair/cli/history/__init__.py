"""`alnair history`: what became of jobs, also of those that are long gone."""

import typer

from alnair.cli.history.jobs import history
from alnair.cli.history.schema import schema
from alnair.cli.history.show import show

app = typer.Typer(no_args_is_help=False)
app.callback(invoke_without_command=True)(history)
app.command("show")(show)
app.command("schema")(schema)
