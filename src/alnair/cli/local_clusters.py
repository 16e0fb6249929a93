"""What `alnair up`, `status` and `down` share: which local cluster, and how they end."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.failures import INTERRUPTED, USAGE, expected, fail

if TYPE_CHECKING:
    from alnair.cli.progress import Display
    from alnair.local.status import ClusterStatus

LocalName = Annotated[
    str, typer.Option("--name", metavar="NAME", help="Which cluster; each has its own ports.")
]


@contextlib.contextmanager
def reporting() -> Iterator["Display"]:
    """Show what is going on, and turn an expected failure into its sentence and exit code.

    Raises:
        typer.Exit: It failed, or was interrupted.
    """
    try:
        from alnair.cli.progress import Display
        from alnair.kube.errors import KubeError
        from alnair.local.errors import InvalidArgumentError, LocalClusterError
    except ModuleNotFoundError as error:
        fail(f"{error.name} is missing: run  pip install 'alnair[local]'")
    try:
        with (
            expected(LocalClusterError, KubeError, OSError),
            expected(InvalidArgumentError, code=USAGE),
            Display() as display,
        ):
            yield display
    except KeyboardInterrupt:
        fail("interrupted; the same command goes on from here", code=INTERRUPTED)


def exit_by(result: "ClusterStatus") -> None:
    """End with 1 if something is not well.

    Raises:
        typer.Exit: It is not.
    """
    if not result.healthy:
        raise typer.Exit(1)
