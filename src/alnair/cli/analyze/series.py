"""`alnair analyze series`: cycle, phases and forecast of a series of samples."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from alnair.cli.failures import USAGE, expected, fail
from alnair.cli.json_output import json_option, write_json


def series(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A CSV table, perhaps gzipped, with the columns time_s and value; - is stdin.",
        ),
    ],
    horizon: Annotated[
        str,
        typer.Option("--horizon", metavar="SPAN", help="How far to look ahead, such as 10m, 1h."),
    ] = "1h",
    coverage: Annotated[
        float,
        typer.Option(
            "--coverage",
            min=0.5,
            max=0.99,
            metavar="PART",
            help="In what part of such times a bound of the forecast shall hold.",
        ),
    ] = 0.9,
    json: Annotated[bool, json_option("all of it")] = False,
) -> None:
    """Say of a series of samples whether it is cyclic, which phases it has, and what comes next.

    Any rate and unit will do, as percents of a GPU or MiB of memory; a value that is empty or nan
    is a sample that was missed. A period is told from four repetitions on, a forecast from twice
    its horizon on; what cannot be told is said, with the reason.

    Ends with 0, or 2 on wrong usage or a file that cannot be used: each problem with its line and
    column.

    Examples:
      alnair analyze series gpu-util.csv
      alnair analyze series memory.csv.gz --horizon 30m --coverage 0.95 --json
      sampler | alnair analyze series -
    """
    import numpy as np

    from alnair.cli.text.series_analysis import lines
    from alnair.model.durations import seconds
    from alnair.profiler.even_grid import Refusal
    from alnair.profiler.series_analysis import analyze
    from alnair.traces import files
    from alnair.traces.csv_table import TableError
    from alnair.traces.series_table import read_series

    try:
        ahead = seconds(horizon)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--horizon") from None
    is_stdin = str(file) == "-"
    name = "stdin" if is_stdin else str(file)
    with expected(files.TraceFileError, TableError, code=USAGE):
        if is_stdin:
            text = files.decoded(sys.stdin.buffer.read(files.MOST_BYTES), Path(name))
        else:
            text = files.text(file)
        times, values = read_series(files.lines_of(text), name)
    found = analyze(np.array(times), np.array(values), horizon_s=ahead, coverage=coverage)
    if isinstance(found, Refusal):
        fail(f"{name}: {found.reason}", code=USAGE)
    if json:
        write_json(found)
        return
    for line in lines(found):
        typer.echo(line)
