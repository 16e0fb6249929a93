"""Which cluster a command means: a kubeconfig, a local cluster by its name, or what is there."""

import os
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from alnair.cli.failures import UNREADABLE, expected
from alnair.cli.option_groups import OptionGroup

if TYPE_CHECKING:
    from alnair.kube.access.connection import Connection
    from alnair.kube.client import Client

T = TypeVar("T")


ClusterName = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar="NAME",
        help="Local cluster (see 'alnair up'). Without this and --kubeconfig: $KUBECONFIG,"
        " else the local cluster 'alnair', else as kubectl.",
    ),
]


class ClusterOptions(OptionGroup, frozen=True, kw_only=True):
    """Which cluster."""

    kubeconfig: Annotated[
        Path | None, typer.Option("--kubeconfig", metavar="FILE", help="Kubeconfig of the cluster.")
    ] = None
    context: Annotated[
        str | None, typer.Option("--context", metavar="NAME", help="Context of the kubeconfig.")
    ] = None
    name: ClusterName = None

    @property
    def are_given(self) -> bool:
        """Whether the user named a cluster."""
        return bool(self.kubeconfig or self.context or self.name)

    def connection(self) -> "Connection":
        """Find the cluster; raises as `connection` does."""
        return connection(self.kubeconfig, self.context, self.name)


def connection(kubeconfig: Path | None, context: str | None, name: str | None) -> "Connection":
    """Find the cluster: the one that is named, $KUBECONFIG, the local cluster, or as kubectl.

    Raises:
        ConfigError: There is none, or its kubeconfig cannot be used.
        LocalClusterError: The name is not one of a cluster.
    """
    from alnair.kube.access import client_config
    from alnair.kube.errors import ConfigError
    from alnair.local.layout import DEFAULT_NAME

    if name is not None and kubeconfig is not None:
        raise ConfigError("--name", "", "and --kubeconfig both say which cluster: give one of them")
    if kubeconfig is not None or (context is not None and name is None):
        return client_config.load(kubeconfig, context)
    if name is None and os.environ.get("KUBECONFIG"):
        return client_config.load()
    local = local_kubeconfig(name or DEFAULT_NAME)
    if local.exists():
        return client_config.load(local, context)
    others = ", ".join(local_clusters())
    if name is None:
        try:
            return client_config.load()  # ~/.kube/config, or the service account of this pod
        except ConfigError as error:
            hint = f"; --name takes the local clusters {others}" if others else ""
            raise ConfigError(error.source, error.field, error.problem + hint) from None
    there = f"there are {others}; " if others else ""
    raise ConfigError(
        f"local cluster {name}",
        "",
        f"is not there: {there}start it with 'alnair up --name {name}', or give --kubeconfig",
    )


def local_clusters() -> list[str]:
    """Return the names of the local clusters that are there."""
    from alnair.local.layout import clusters_folder

    folder = clusters_folder(os.environ)
    return sorted(path.parent.name for path in folder.glob("*/admin.kubeconfig"))


def local_kubeconfig(name: str) -> Path:
    """Return where the kubeconfig of a local cluster is, if there is the cluster.

    Raises:
        InvalidArgumentError: No cluster can have the name.
    """
    from alnair.local.layout import Layout, clusters_folder

    return Layout(clusters_folder(os.environ), name).kubeconfig("admin")


def local_name(name: str | None, kubeconfig: Path | None, context: str | None) -> str | None:
    """Return the name of the local cluster that is meant; None: another cluster is.

    Raises:
        ConfigError: A local cluster and another one are named.
    """
    from alnair.kube.errors import ConfigError
    from alnair.local.layout import DEFAULT_NAME, clusters_folder

    if name is not None:
        if kubeconfig is not None or context is not None:
            raise ConfigError("--name", "", "and another option both say which cluster: give one")
        return name
    if context is not None:
        return None
    given = kubeconfig or os.environ.get("KUBECONFIG")
    if given is None:
        is_there = local_kubeconfig(DEFAULT_NAME).exists()
        has_other = Path("~/.kube/config").expanduser().exists()
        return DEFAULT_NAME if is_there or not has_other else None
    folder = Path(given).expanduser().absolute().parent
    return folder.name if folder.parent == clusters_folder(os.environ) else None


def ask(
    connection: "Connection",
    verb: str,
    work: "Callable[[Client], Awaitable[T]]",
    *,
    says_if_slow: bool = True,
) -> T:
    """Return what `work` returns, run to its end with a client of the cluster.

    Args:
        connection: Of the cluster.
        verb: Who asks; the API server's logs say it.
        work: Takes the open client.
        says_if_slow: Whether stderr says so, once, where the API server lets one wait. Not where
            the screen is drawn.
    """
    import asyncio

    told: list[str] = []

    def overdue(request: str) -> None:
        if not told:
            typer.echo(f"waiting for the API server: {request}", err=True)
        told.append(request)

    async def run() -> T:
        from alnair.kube.client import Client

        slow = overdue if says_if_slow else None
        async with Client(connection, user_agent=f"alnair-{verb}", overdue=slow) as client:
            return await work(client)

    return asyncio.run(run())


def unreadable(
    *more: type[Exception], before: str = "the cluster cannot be read: ", wordless: str = ""
) -> AbstractContextManager[None]:
    """Turn what goes wrong with a cluster into a sentence and the exit code 3.

    Args:
        *more: Errors that count as that, besides those of the API, of local clusters and of I/O.
        before: Begins the sentence.
        wordless: The sentence of an error that has none.
    """
    from alnair.kube.errors import KubeError
    from alnair.local.errors import LocalClusterError

    errors: tuple[type[Exception], ...] = (KubeError, LocalClusterError, OSError, *more)
    return expected(*errors, code=UNREADABLE, before=before, wordless=wordless)
