"""How a command ends that cannot do what it shall: a sentence on stderr and an exit code.

An error that is no bug is one of the exceptions that a command names with `expected`; any other is
a bug, and its traceback is shown.
"""

import contextlib
from collections.abc import Iterator
from typing import Final, NoReturn

import typer

from alnair.cli.standard_streams import StdoutError

#: It is not as it should be, or it could not be done.
FAILED: Final = 1
#: Wrong usage, or a wrong file.
USAGE: Final = 2
#: The cluster cannot be read or reached.
UNREADABLE: Final = 3
#: Ended by the user.
INTERRUPTED: Final = 130
#: Why reading a cluster failed, where the error itself has no words: a time-out.
NOT_IN_TIME: Final = "it could not be read in a minute"


@contextlib.contextmanager
def expected(
    *errors: type[BaseException],
    code: int = FAILED,
    prefix: str = "alnair: ",
    before: str = "",
    wordless: str = "",
) -> Iterator[None]:
    """Turn errors of these types, alone or in a group, into their sentence and an exit code.

    Args:
        *errors: The types.
        code: The exit code.
        prefix: Begins each line.
        before: Begins the sentence.
        wordless: The sentence of an error that has none.

    Raises:
        typer.Exit: One of them came.
    """
    try:
        yield
    except BaseException as error:
        leaves = list(_leaves(error))
        if not all(isinstance(one, errors) for one in leaves):
            raise
        for one in leaves:
            if isinstance(one, StdoutError):  # it is of no file or cluster
                raise one from None
        fail(before + (words(next(_leaves(error)), prefix) or wordless), code=code, prefix=prefix)


def fail(text: str, *, code: int = FAILED, prefix: str = "alnair: ") -> NoReturn:
    """Say why, a line for each problem, and end.

    Raises:
        typer.Exit: Always.
    """
    for line in text.splitlines() or [""]:
        typer.echo(f"{prefix}{line}", err=True)
    raise typer.Exit(code)


def words(error: BaseException, prefix: str = "") -> str:
    """Return what an error says: of the system's as `FILE: No such file`, without its number."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    file = "" if error.filename is None else str(error.filename)
    return error.strerror if not file or file in prefix else f"{file}: {error.strerror}"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
