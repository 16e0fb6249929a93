"""`alnair kubectl`: kubectl on a local cluster."""

import os
import shutil
from typing import Annotated

import typer

from alnair.cli.cluster_selection import local_kubeconfig, local_name
from alnair.cli.failures import FAILED, USAGE, expected, fail


def kubectl(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Which local cluster; before the words; default: $KUBECONFIG's, else alnair.",
        ),
    ] = None,
) -> None:
    """Run kubectl on the local cluster, with its kubeconfig; all other words are kubectl's.

    Ends as kubectl does, and with 1 if there is no kubectl or no such cluster.

    Examples:
      alnair kubectl get pods -n openb -o wide
      alnair kubectl --name two describe node a100x8-0000
    """
    from alnair.local.errors import InvalidArgumentError
    from alnair.local.layout import DEFAULT_NAME

    name = name or local_name(None, None, None) or DEFAULT_NAME
    with expected(InvalidArgumentError, code=USAGE):
        kubeconfig = local_kubeconfig(name)
    if not kubeconfig.exists():
        fail(f"there is no cluster {name!r}: start it with 'alnair up --name {name}'")
    program = shutil.which("kubectl")
    if program is None:
        fail(
            "there is no kubectl on PATH: any version from 1.35 to 1.37 works, see"
            " https://kubernetes.io/docs/tasks/tools; then also:"
            f" KUBECONFIG={kubeconfig} kubectl ...",
            code=FAILED,
        )
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    os.execve(program, [program, *context.args], environment)
