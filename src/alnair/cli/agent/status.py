"""`alnair agent status`: the node's GPUs, and who has which part of them."""

from typing import Annotated

import typer

from alnair.cli.agent.asking import ask_status
from alnair.cli.agent.slice_options import DEFAULT_FOLDER, FolderOption
from alnair.cli.json_output import json_option, write_json


def status(
    folder: FolderOption = DEFAULT_FOLDER,
    json: Annotated[bool, json_option("the result")] = False,
) -> None:
    """Show the node's GPUs and the slices that its containers have and use.

    Examples:
      alnair agent status
      alnair agent status --json | jq .containers
    """
    from alnair.cli.text import agent_status
    from alnair.cli.text.console import console

    shown = ask_status(folder)
    if json:
        write_json(shown)
        return
    for line in agent_status.lines(shown):
        typer.echo(line)
    agent_status.show_containers(shown, console(wide=True))
