"""What an interrupt leaves of a command: how far it came, and what stays."""

import contextlib
import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, Final

from alnair.cli.failures import INTERRUPTED, fail

#: Of commands that change something, in their words; of the others no more is said.
_STAYS: Final = {
    "alnair.cli.rebalance": "what has moved stays moved, and the node is as it was; plan again",
    "alnair.cli.training.migrate": "what was asked for goes on: 'alnair jobs' shows how far it is;"
    " --cancel takes it back",
    "alnair.cli.training.scale": "what was asked for goes on: 'alnair jobs' shows how far it is",
    "alnair.cli.training.suspend": "what was asked for goes on: 'alnair jobs' shows how far it is",
    "alnair.cli.training.resume": "what was asked for goes on: 'alnair jobs' shows how far it is",
    "alnair.cli.training.submit": "a job that was created goes on: see 'alnair jobs'",
    "alnair.cli.demo": "the cluster runs on: 'alnair down' ends it, the same command goes on",
}


@contextlib.contextmanager
def saying(what: Callable[[], str]) -> Iterator[None]:
    """Have an interrupt of what is done within end the command with a sentence.

    Args:
        what: Says then how far it came and what stays.

    Raises:
        typer.Exit: It was interrupted.
    """
    try:
        yield
    except KeyboardInterrupt:
        fail(f"interrupted{what()}", code=INTERRUPTED)


def told(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that has nothing better to say of an interrupt say what stays."""
    stays = _STAYS.get(inspect.unwrap(command).__module__)

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        with saying(lambda: f"; {stays}" if stays else ""):
            command(*arguments, **options)

    return run
