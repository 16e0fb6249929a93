"""Asks the agent of this node over its socket."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from alnair.cli.failures import expected

if TYPE_CHECKING:
    from alnair.processes.agent.admin_socket import AgentStatus, Answer, Request


def ask(folder: Path, request: "Request") -> "Answer":
    """Return the agent's answer; its warning is shown.

    Raises:
        typer.Exit: It does not answer, or refuses.
    """
    from alnair.processes.agent import admin_socket

    with expected(admin_socket.AdminError, prefix="error: "):
        answer = admin_socket.ask(folder, request)
    if answer.warning:
        typer.echo(f"warning: {answer.warning}", err=True)
    return answer


def ask_status(folder: Path) -> "AgentStatus":
    """Return what the agent says of the node's GPUs and containers.

    Raises:
        typer.Exit: It does not answer.
    """
    from alnair.processes.agent.admin_socket import Show

    found = ask(folder, Show()).status
    assert found is not None
    return found
