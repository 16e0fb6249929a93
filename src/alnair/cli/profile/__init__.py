"""`alnair profile`: measures workloads on this machine."""

import typer

from alnair.cli.profile.pair import pair

app = typer.Typer(no_args_is_help=True)


@app.callback()
def profile() -> None:
    """Measure workloads on this machine."""


app.command("pair")(pair)
