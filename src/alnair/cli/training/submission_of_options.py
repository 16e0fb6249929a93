"""From the options of `alnair submit` to what is wanted; what is wrong with one says so."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from alnair.cli.training.submit_options import PolicyOptions, ProgramOptions, SizeOptions
    from alnair.elastic.submission import Script, Submission

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST: Final = 63
_WORKERS: Final = re.compile(r"(\d{1,6})(?:\.\.(\d{1,6}))?")
_VARIABLE: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_MIB: Final = 2**20


def submission(
    words: Sequence[str],
    program: "ProgramOptions",
    size: "SizeOptions",
    policy: "PolicyOptions",
) -> "Submission":
    """Return what is wanted.

    Args:
        words: A script and its arguments, or a command of the image.
        program: What runs.
        size: How much.
        policy: When, where and how long.

    Raises:
        typer.BadParameter: An option is wrong.
    """
    from alnair.elastic.submission import Submission, SubmissionError, checked

    script = _script(words)
    least, most = _bounds(size)
    memory = _gpu_memory(size)
    wanted = Submission(
        name=_name(program.job, script, words),
        kind=program.kind,
        image=program.image,
        least=least,
        most=most,
        gpus=None if memory is not None else 1 if size.gpus is None else size.gpus,
        gpu_memory_mib=memory,
        gpu_percent=size.gpu_share,
        gpu_types=tuple(size.gpu_type or ()),
        slots=size.slots,
        command=tuple(words[1:] if script else words),
        script=script,
        env=tuple(_pairs(program.env, "--env").items()),
        resources=_resources(size.resource),
        node_selector=_pairs(policy.node_label, "--node-label"),
        priority_class=policy.priority,
        scheduler=policy.scheduler,
        service_account=program.service_account,
        image_pull_policy=program.pull,
        backoff_limit=policy.retries,
        deadline_s=_span(policy.deadline, "--deadline"),
        keep_s=_span(policy.keep, "--keep"),
    )
    for name, _ in wanted.env:
        if not _VARIABLE.fullmatch(name):
            raise typer.BadParameter(f"{name!r} is no name of a variable", param_hint="--env")
    try:
        checked(wanted)
    except SubmissionError as error:
        raise typer.BadParameter(str(error), param_hint=error.option) from None
    return wanted


def _script(words: Sequence[str]) -> "Script | None":
    """Return the script if the first word is one: a Python file of this machine."""
    from alnair.elastic.submission import Script

    if not words or not words[0].endswith(".py"):
        return None
    path = Path(words[0])
    if path.is_absolute() and not path.exists():
        return None  # a program of the image that runs by itself
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise typer.BadParameter(
            f"{path} is not there; to run a program of the image, write its command after --, as"
            f" in -- {path if ' ' in str(path) else f'python {path}'}",
            param_hint="SCRIPT",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{path} cannot be read: {error}", param_hint="SCRIPT") from None
    if not re.fullmatch(r"[-._a-zA-Z0-9]+", path.name):
        raise typer.BadParameter(
            f"{path.name!r} cannot be a key of a ConfigMap: name the file with letters, digits, -,"
            " _ and . only",
            param_hint="SCRIPT",
        )
    return Script(path.name, text)


def _name(given: str | None, script: "Script | None", words: Sequence[str]) -> str:
    if given is None and script is None:
        gone = f"{words[0]} is not there, and " if words and words[0].endswith(".py") else ""
        raise typer.BadParameter(
            f"{gone}without a script NAME.py the job has no name yet: give one", param_hint="--job"
        )
    name = given
    if name is None:
        assert script is not None
        name = re.sub(r"[^a-z0-9]+", "-", script.name.removesuffix(".py").lower()).strip("-")
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise typer.BadParameter(
            f"{name!r} cannot be the name of a job: write at most {_LONGEST} lower-case letters,"
            " digits and -, such as mnist-2; neither first nor last a -",
            param_hint="--job",
        )
    return name


def _bounds(size: "SizeOptions") -> tuple[int, int]:
    if size.workers is not None:
        if size.least is not None or size.most is not None:
            raise typer.BadParameter("--min and --max say it, too: leave one away", param_hint="-w")
        found = _WORKERS.fullmatch(size.workers)
        if found is None:
            raise typer.BadParameter(
                f"{size.workers!r} is no number of workers: write 2..8, or 4",
                param_hint="--workers",
            )
        return int(found[1]), int(found[2] or found[1])
    if size.least is None and size.most is None:
        return 1, 1
    least = 1 if size.least is None else size.least
    return least, least if size.most is None else size.most


def _gpu_memory(size: "SizeOptions") -> int | None:
    """Return the MiB of a slice; None if it is none."""
    from alnair.model.quantity import QuantityError, value

    if size.gpu_memory is None:
        return None
    if size.gpus is not None:
        raise typer.BadParameter(
            "--gpus are whole ones, and --gpu-memory is a part of one: leave one away",
            param_hint="--gpu-memory",
        )
    try:
        found = value(size.gpu_memory)
    except QuantityError as error:
        raise typer.BadParameter(str(error), param_hint="--gpu-memory") from None
    if found < 64 * _MIB:
        raise typer.BadParameter(
            f"{size.gpu_memory} is {found:,} bytes, and 64Mi is the least: write 8Gi for 8 GiB",
            param_hint="--gpu-memory",
        )
    return -(-found // _MIB)


def _resources(given: Sequence[str] | None) -> dict[str, str]:
    from alnair.model.quantity import QuantityError, nanos

    found = _pairs(given, "--resource")
    for name, amount in found.items():
        try:
            is_amount = nanos(amount) >= 0
        except QuantityError:
            is_amount = False
        if not is_amount:
            raise typer.BadParameter(
                f"{amount!r} of {name} is no amount: write a number of 0 or more with an optional"
                " suffix, such as 500m or 4Gi",
                param_hint="--resource",
            )
    return found


def _pairs(given: Sequence[str] | None, option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in given or ():
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{one!r} is no pair: write NAME=VALUE", param_hint=option)
        if name in found:
            raise typer.BadParameter(f"{name} is given twice", param_hint=option)
        found[name] = value
    return found


def _span(text: str | None, option: str) -> int | None:
    from alnair.model.durations import seconds

    if text is None:
        return None
    try:
        return max(1, round(seconds(text)))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
