"""`alnair agent`: what runs on a GPU node, and the commands that try a slice there by hand."""

import typer

from alnair.cli.agent import container
from alnair.cli.agent.doctor import doctor
from alnair.cli.agent.forget import forget
from alnair.cli.agent.process import agent
from alnair.cli.agent.run import run
from alnair.cli.agent.status import status

app = typer.Typer(invoke_without_command=True)
app.callback()(agent)
app.command("status")(status)
app.command("doctor")(doctor)
app.command("forget")(forget)
app.command("run", context_settings={"ignore_unknown_options": True})(run)
app.add_typer(container.app, name="container")
