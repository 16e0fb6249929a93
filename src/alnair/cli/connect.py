"""Which cluster a command means: a kubeconfig, a local cluster by its name, or what is there."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from alnair.kube.connection import Connection

KubeconfigOption = Annotated[
    Path | None, typer.Option("--kubeconfig", metavar="FILE", help="Kubeconfig of the cluster.")
]
ContextOption = Annotated[
    str | None, typer.Option("--context", metavar="NAME", help="Context of the kubeconfig.")
]
NameOption = Annotated[
    str | None,
    typer.Option(
        "--name",
        "-n",
        metavar="NAME",
        help="Local cluster (see 'alnair up'). Without this and --kubeconfig: $KUBECONFIG, or the"
        " local cluster 'alnair'.",
    ),
]


def first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error of a group, however deep it is."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def connection(kubeconfig: Path | None, context: str | None, name: str | None) -> "Connection":
    """Find the cluster.

    Raises:
        ConfigError: There is none, or its kubeconfig cannot be used.
        LocalClusterError: The name is not one of a cluster.
    """
    from alnair.kube import config
    from alnair.kube.errors import ConfigError
    from alnair.local.controlplane import LocalCluster
    from alnair.local.layout import DEFAULT_NAME

    if name is not None and kubeconfig is not None:
        raise ConfigError("--name", "", "and --kubeconfig both say which cluster: give one of them")
    if kubeconfig is not None or (context is not None and name is None):
        return config.load(kubeconfig, context)
    if name is None and os.environ.get("KUBECONFIG"):
        return config.load()
    local = LocalCluster(name or DEFAULT_NAME).kubeconfig()
    if local.exists():
        return config.load(local, context)
    option = f" --name {name}" if name else ""
    raise ConfigError(
        f"local cluster {name or DEFAULT_NAME}",
        "",
        f"is not there: start it with 'alnair up{option}', or give --kubeconfig",
    )
