"""`alnair profile pair`: how fast two workloads run beside one another."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.failures import FAILED, INTERRUPTED, USAGE, expected
from alnair.cli.json_output import json_option_last, write_json

if TYPE_CHECKING:
    from alnair.node.pairing.workload import Command

_PATTERN = (
    "How the {} shows its steps: a regular expression with a group (?P<step>...), or one without"
    " groups, of which each match is a step; by default as alnair analyze log reads it."
)


def pair(
    *,
    first: Annotated[str, typer.Argument(metavar="CMD1", help="Runs until it is ended.")],
    second: Annotated[str, typer.Argument(metavar="CMD2", help="The same.")],
    pattern: Annotated[
        str | None, typer.Option("--pattern", metavar="REGEX", help=_PATTERN.format("first"))
    ] = None,
    pattern2: Annotated[
        str | None,
        typer.Option("--pattern2", metavar="REGEX", help="The same of the second, if it differs."),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option("--gpu", metavar="ID", help="Both see this one alone (CUDA_VISIBLE_DEVICES)."),
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Measure so often.")] = 3,
    warm_up: Annotated[
        float, typer.Option("--warm-up", min=0, help="Seconds of each run that do not count.")
    ] = 10.0,
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, help="Seconds that do.")] = 30.0,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Add the pair to this table of pairs."),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option("--kinds", metavar="A,B", help="What the two are called in the table."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="The GPU model, for the table.")
    ] = None,
    json: Annotated[bool, json_option_last("the speeds")] = False,
) -> None:
    r"""Measure how fast two workloads run beside one another, as a part of their speed alone.

    Each round runs both alone and both together, on the same GPU; rounds alternate in order. The
    first seconds do not count. A speed is the median of the rounds' own ratios, with half of
    their range. Commands are run without a shell, and ended with all of their processes.

    Ends with 0, 1 if a workload cannot be measured, 2 on wrong usage, 130 after an interrupt.

    Examples:
      alnair profile pair 'python resnet.py' 'python bert.py' --gpu 0
      alnair profile pair ./a ./b --pattern 'iteration (?P<step>\d+)' --rounds 5
      alnair profile pair ./a ./b --out pairs.json --model A100 --kinds resnet,bert
    """
    from alnair.cli.text import pair_speeds
    from alnair.cli.text.console import console
    from alnair.node.pairing.measuring import Times
    from alnair.node.pairing.measuring import rounds as measure
    from alnair.node.pairing.workload import RunError
    from alnair.profiler.pair_speeds import summarise
    from alnair.sim import pair_tables
    from alnair.sim.pair_tables import PairTableError

    commands = _command(first, pattern, gpu), _command(second, pattern2 or pattern, gpu)
    named = _kinds(kinds, out, model)
    with (
        expected(RunError, code=FAILED),
        expected(OSError, PairTableError, code=USAGE),
        expected(KeyboardInterrupt, code=INTERRUPTED, wordless="interrupted; nothing is kept"),
    ):
        tables = pair_tables.load(out) if out else {}
        times = Times(warm_up, seconds)
        found = summarise(
            measure(*commands, times, rounds, lambda said: typer.echo(said, err=True))
        )
        if out and model:
            tables[model] = pair_tables.with_pair(tables.get(model), named, found)
            pair_tables.save(out, tables)
    pair_speeds.show(found, named, console(json=json))
    if json:
        write_json(found)


def _command(text: str, pattern: str | None, gpu: str | None) -> "Command":
    """Return the command, after a look at its pattern."""
    from alnair.node.pairing.workload import Command
    from alnair.profiler.logs.linear.syntax import PatternError
    from alnair.profiler.logs.step_counter import StepCounter

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text}: {error}", param_hint="CMD") from None
    if not words:
        raise typer.BadParameter("there is no command in it", param_hint="CMD")
    try:
        StepCounter(pattern)
    except PatternError as error:
        raise typer.BadParameter(str(error), param_hint="--pattern") from None
    return Command(tuple(words), pattern, {} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu})


def _kinds(kinds: str | None, out: Path | None, model: str | None) -> tuple[str, str]:
    """Return what the two are called; a table needs names and a model."""
    if (out is None) != (model is None):
        raise typer.BadParameter("say both --out and --model, or neither", param_hint="--out")
    if kinds is None:
        if out is not None:
            raise typer.BadParameter("a table needs the names of the two", param_hint="--kinds")
        return "first", "second"
    first, comma, second = (part.strip() for part in kinds.partition(","))
    if not (first and comma and second) or "," in second:
        raise typer.BadParameter(f"{kinds!r} are not two names: A,B", param_hint="--kinds")
    return first, second
