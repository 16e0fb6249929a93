"""The option --json and its other spelling, -o json; and what it writes: one line on stdout."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, Literal

import msgspec
import typer

#: The parameter of a command that has `--json`.
_JSON = "json"
#: The parameter that it gets beside it.
OUTPUT = "output"
_OUTPUT_TYPE = Annotated[
    Literal["json"] | None,
    typer.Option("--output", "-o", metavar="json", help="The same, as kubectl has it."),
]


def json_option(what: str) -> Any:
    """Return the option --json of a command that writes this."""
    return typer.Option("--json", help=f"Write {what} as one line of JSON.")


def json_option_last(what: str) -> Any:
    """Return the option --json of a command that shows a table, too: then on stderr, before."""
    return typer.Option("--json", help=f"Write {what} as one line of JSON, last.")


def with_output(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that takes `--json` take `-o json`, too; others are left as they are."""
    signature = inspect.signature(command)
    if _JSON not in signature.parameters or OUTPUT in signature.parameters:
        return command

    @wraps(command)
    def run(**given: Any) -> None:
        given[_JSON] |= given.pop(OUTPUT) == _JSON
        command(**given)

    parameters = []
    for one in signature.parameters.values():
        parameters.append(one.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        if one.name == _JSON:
            kind = inspect.Parameter.KEYWORD_ONLY
            also = inspect.Parameter(OUTPUT, kind, default=None, annotation=_OUTPUT_TYPE)
            parameters.append(also)
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def write_json(result: object) -> None:
    """Write a result as one line of JSON."""
    typer.echo(msgspec.json.encode(result).decode())
