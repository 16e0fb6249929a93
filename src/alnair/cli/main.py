"""The command `alnair`: which verbs there are, and how any of them ends.

A verb is a function of a module of this package. Only the module of the verb that was asked for is
imported (all of them for `--help`), and these modules import what is slow inside their functions.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence

import typer

from alnair.cli.interrupted import told
from alnair.cli.json_output import with_output
from alnair.cli.numbers import Verb, Verbs

#: Verb → the module of this package and its function, in the order of `--help`.
COMMANDS = {
    "up": ("up", "up"),
    "status": ("status", "status"),
    "down": ("down", "down"),
    "kubectl": ("kubectl", "kubectl"),
    "scheduler": ("scheduler", "app"),
    "controller": ("controller", "controller"),
    "agent": ("agent", "app"),
    "rebalance": ("rebalance", "rebalance"),
    "replay": ("replay", "replay"),
    "submit": ("training.submit", "submit"),
    "jobs": ("training.jobs", "jobs"),
    "logs": ("training.logs", "logs"),
    "scale": ("training.scale", "scale"),
    "suspend": ("training.suspend", "suspend"),
    "resume": ("training.resume", "resume"),
    "migrate": ("training.migrate", "migrate"),
    "simulate": ("simulate", "app"),
    "check": ("check", "check"),
    "doctor": ("doctor", "doctor"),
    "report": ("report", "app"),
    "analyze": ("analyze", "app"),
    "history": ("history", "app"),
    "explain": ("explain", "explain"),
    "top": ("top", "top"),
    "profile": ("profile", "app"),
    "backup": ("backup", "backup"),
    "restore": ("restore", "restore"),
    "demo": ("demo", "demo"),
}

#: Of a verb whose words are another program's, options and all.
_PASSED_ON = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
}


#: Packages that only some verbs need: how they are installed, by the name that is imported.
EXTRAS = {
    **dict.fromkeys(("cryptography", "psutil"), "alnair[local]"),
    **dict.fromkeys(("google", "grpc", "pynvml"), "alnair[agent]"),
    **dict.fromkeys(("jinja2", "matplotlib"), "alnair[report]"),
    **dict.fromkeys(("alembic", "psycopg", "sqlalchemy"), "alnair[history]"),
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
            app.add_typer(run, name=verb, help=_complete(run), cls=Verbs)
        else:
            settings = _PASSED_ON if verb == "kubectl" else None
            made = app.command(verb, help=_help(run), context_settings=settings, cls=Verb)
            made(with_output(told(run)))
    return app


def _complete(group: typer.Typer) -> str:
    """Give the verbs of a group their help and `-o json`, at any depth; return the group's help."""
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        inner.help = _complete(inner.typer_instance)
        inner.cls = Verbs
    for command in group.registered_commands:
        assert command.callback is not None
        command.help = _help(command.callback)
        command.cls = Verb
        command.callback = with_output(told(command.callback))
    callback = group.registered_callback
    assert callback is not None
    assert callback.callback is not None
    callback.callback = told(callback.callback)
    return _help(callback.callback)


def _help(run: Callable[..., None]) -> str:
    """A verb's docstring, with the lines of its paragraph "Examples:" kept apart."""
    # \b is what tells the help formatter not to wrap a paragraph.
    return (inspect.getdoc(run) or "").replace("\n\nExamples:\n", "\n\n\b\nExamples:\n")


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        from alnair.built_from import commit

        typer.echo(f"alnair {version('alnair')} (commit {commit() or 'unknown'})")
        raise typer.Exit


def _version(
    version: bool = typer.Option(
        False,
        "--version",
        callback=_show_version,
        is_eager=True,
        help="Show the version and commit.",
    ),
) -> None:
    """Alnair makes a Kubernetes GPU cluster do more with the GPUs it has."""


def wanted(arguments: Sequence[str]) -> list[str]:
    """The verbs to load for these arguments: the one that is called, or all."""
    if arguments and arguments[0] in COMMANDS:
        return [arguments[0]]
    return list(COMMANDS)


def missing(module: str | None) -> str | None:
    """What to say where a module is not there; None where that is a bug."""
    package = (module or "").partition(".")[0]
    if package not in EXTRAS:
        return None
    return (
        f"alnair: this command needs the package {package}, which is not installed here:"
        f" pip install '{EXTRAS[package]}'; in a pod, use the image of another component"
    )


def main() -> None:
    """Runs the command."""
    try:
        build(wanted(sys.argv[1:]))()
    except ModuleNotFoundError as error:
        said = missing(error.name)
        if said is None:
            raise
        sys.exit(said)
