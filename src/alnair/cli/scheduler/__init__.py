"""`alnair scheduler`: the scheduler process, and what looks at it from outside."""

import typer

from alnair.cli.scheduler.process import scheduler
from alnair.cli.scheduler.replay import replay
from alnair.cli.scheduler.snapshot import snapshot

app = typer.Typer(invoke_without_command=True)
app.callback()(scheduler)
app.command("snapshot")(snapshot)
app.command("replay")(replay)
