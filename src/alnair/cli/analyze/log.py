"""`alnair analyze log`: framework, step, epoch, loss, rate and remaining time from a log."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.failures import FAILED, USAGE, expected, fail
from alnair.cli.json_output import json_option, write_json
from alnair.model.plurals import counted

if TYPE_CHECKING:
    from alnair.profiler.logs.user_pattern import UserPattern

#: Bytes that are read at a time.
_PIECE = 1 << 18


def log(
    *,
    file: Annotated[Path, typer.Argument(help="A training's log; - reads standard input.")],
    pattern: Annotated[
        str | None,
        typer.Option(
            "--pattern",
            metavar="REGEX",
            help="Read lines by this instead of the known formats: named groups step, steps, epoch,"
            " epochs, loss, accuracy, rate, step_seconds, samples_per_s.",
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option("--steps", min=1, help="All steps that there will be, if the log is silent."),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", min=1, help="The same for epochs.")
    ] = None,
    json: Annotated[bool, json_option("the findings")] = False,
) -> None:
    r"""Say how far a training is and when it will be done, from what it prints.

    Reads logs of PyTorch's and Horovod's examples, Lightning, Hugging Face, Keras and TensorFlow,
    Megatron, DeepSpeed, fastai, bars of tqdm, and names beside numbers (step=3 loss: 0.5). Time
    is taken from the lines if they begin with one (kubectl logs --timestamps), else from the rates
    that are printed; then evaluations are not counted. No text is kept.

    Ends with 0, 1 if the log says nothing of a training, 2 if it cannot be read or the pattern
    cannot be used.

    Examples:
      alnair analyze log train.log
      kubectl logs --timestamps my-job-x7f2p | alnair analyze log - -o json
      alnair analyze log resnet.log --epochs 90
      alnair analyze log own.log --pattern 'it (?P<step>\d+) of (?P<steps>\d+)'
    """
    from alnair.profiler.logs.log_reader import LogReader

    reader = LogReader(_compiled(pattern), steps, epochs)
    is_input = str(file) == "-"
    with expected(OSError, code=USAGE):
        source = nullcontext(sys.stdin.buffer) if is_input else file.open("rb")
        with source as stream:
            while data := stream.read(_PIECE):
                reader.feed(data)
    reader.close()
    found = reader.findings()
    if json:
        write_json(found)
    if not found.readings:
        what = "is matched by the pattern" if pattern else "is of a known format"
        text = (
            f"{file}: none of {counted(found.lines, 'line')} {what}: say with --pattern "
            f"how to read them"
        )
        fail(text, code=FAILED)
    if not json:
        from alnair.cli.text import log_findings

        log_findings.show(found)


def _compiled(pattern: str | None) -> "UserPattern | None":
    from alnair.profiler.logs.linear_pattern import PatternError
    from alnair.profiler.logs.user_pattern import UserPattern

    if pattern is None:
        return None
    try:
        return UserPattern(pattern)
    except PatternError as error:
        raise typer.BadParameter(str(error), param_hint="--pattern") from None
