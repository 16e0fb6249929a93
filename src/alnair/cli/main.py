"""The command `alnair`: which verbs there are, and how any of them ends.

A verb is a function of a module of this package. Only the module of the verb that was asked for is
imported (all of them for `--help`), and these modules import what is slow inside their functions.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence

import typer

#: Verb → the module of this package and its function, in the order of `--help`.
COMMANDS = {
    "up": ("up", "up"),
    "status": ("status", "status"),
    "down": ("down", "down"),
    "scheduler": ("scheduler", "app"),
    "controller": ("controller", "controller"),
    "agent": ("agent", "app"),
    "rebalance": ("rebalance", "rebalance"),
    "replay": ("replay", "replay"),
    "simulate": ("simulate", "app"),
    "check": ("check", "check"),
    "doctor": ("doctor", "doctor"),
    "report": ("report", "app"),
    "explain": ("explain", "explain"),
    "demo": ("demo", "demo"),
}


def build(verbs: Iterable[str]) -> typer.Typer:
    """The command with these verbs."""
    app = typer.Typer(
        name="alnair",
        help="Alnair makes a Kubernetes GPU cluster do more with the GPUs it has.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        # Plain help: it keeps the examples' lines, and spares the import of what draws boxes.
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    # With a callback, one verb alone stays a verb and does not become the whole command.
    app.callback()(_version)
    for verb in verbs:
        module, function = COMMANDS[verb]
        run = getattr(importlib.import_module(f"alnair.cli.{module}"), function)
        if isinstance(run, typer.Typer):  # a verb that has verbs of its own
            app.add_typer(run, name=verb, help=_explain(run))
        else:
            app.command(verb, help=_help(run))(run)
    return app


def _explain(group: typer.Typer) -> str:
    """Give the verbs of a group their help, at any depth; return the group's own."""
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        inner.help = _explain(inner.typer_instance)
    for command in group.registered_commands:
        assert command.callback is not None
        command.help = _help(command.callback)
    callback = group.registered_callback
    assert callback is not None
    assert callback.callback is not None
    return _help(callback.callback)


def _help(run: Callable[..., None]) -> str:
    """A verb's docstring, with the lines of its paragraph "Examples:" kept apart."""
    # \b is what tells the help formatter not to wrap a paragraph.
    return (inspect.getdoc(run) or "").replace("\n\nExamples:\n", "\n\n\b\nExamples:\n")


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"alnair {version('alnair')}")
        raise typer.Exit


def _version(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Alnair makes a Kubernetes GPU cluster do more with the GPUs it has."""


def wanted(arguments: Sequence[str]) -> list[str]:
    """The verbs to load for these arguments: the one that is called, or all."""
    if arguments and arguments[0] in COMMANDS:
        return [arguments[0]]
    return list(COMMANDS)


def main() -> None:
    """Runs the command."""
    build(wanted(sys.argv[1:]))()
