"""The option --json, and what it writes: one line on stdout."""

from typing import Any

import msgspec
import typer


def json_option(what: str) -> Any:
    """Return the option --json of a command that writes this."""
    return typer.Option("--json", help=f"Write {what} as one line of JSON.")


def json_option_last(what: str) -> Any:
    """Return the option --json of a command that shows a table, too: then on stderr, before."""
    return typer.Option("--json", help=f"Write {what} as one line of JSON, last.")


def write_json(result: object) -> None:
    """Write a result as one line of JSON."""
    typer.echo(msgspec.json.encode(result).decode())
