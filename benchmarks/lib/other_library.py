"""Another limiter beside ours: which library, and by which variables it gets its limits.

Options of the vgpu_* benchmarks: `--preload PATH`, and `--env NAME=VALUE` as often as needed, where
{percent} and {bytes} stand for the limits of a tenant and {folder} for a folder that is fresh in
each case and the same for all processes of a tenant. `--settle` is how long it has until it is
measured.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

#: Seconds until shares are looked at: ours, and others, of which some adapt by the second.
SETTLED, OTHERS_SETTLED = 2.0, 10.0
OURS, OTHER = "ours", "other"


def library(path: str) -> str:
    """The path of a library that is there, made absolute."""
    if not Path(path).is_file():
        raise argparse.ArgumentTypeError(f"{path} is no file: give the path of a shared library")
    return str(Path(path).resolve())


def variable(text: str) -> tuple[str, str]:
    """A variable and its value, whose braces can be filled in."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    filled(((name, value),))
    return name, value


def filled(
    variables: Sequence[tuple[str, str]], *, percent: int = 0, memory: int = 0, folder: str = ""
) -> dict[str, str]:
    """The variables of one tenant.

    Args:
        variables: as given.
        percent: its limit of compute.
        memory: its limit of memory, bytes.
        folder: its own; where there is none yet, "{folder}" is left for later.

    Raises:
        argparse.ArgumentTypeError: a value has other braces than those that are filled in.
    """
    known: dict[str, Any] = {"percent": percent, "bytes": memory, "folder": folder or "{folder}"}
    try:
        return {name: value.format(**known) for name, value in variables}
    except (KeyError, IndexError, ValueError) as error:
        raise argparse.ArgumentTypeError(
            f"--env: {error} is not filled in, only {{percent}}, {{bytes}} and {{folder}} are"
        ) from error


def ratio(other: float, ours: float) -> float | None:
    """How many times ours another's figure is; None where ours is 0."""
    return round(other / ours, 2) if ours else None


#: What `add_argument` is told of the two options.
PRELOAD: Final[dict[str, Any]] = {
    "type": library,
    "metavar": "PATH",
    "help": "another library, measured beside ours",
}
ENV: Final[dict[str, Any]] = {
    "action": "append",
    "default": [],
    "type": variable,
    "metavar": "NAME=VALUE",
    "help": "for that library; {percent}, {bytes} and {folder} are filled in",
}
