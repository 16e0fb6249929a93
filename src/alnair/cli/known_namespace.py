"""`--namespace` of commands that look: a namespace that there is not is told, as a mistyped one."""

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from alnair.kube.client import Client


async def must_exist(client: "Client", namespace: str | None) -> None:
    """Return if there is such a namespace, or none is named, or the user may not read it.

    Raises:
        typer.BadParameter: There is none; says which ones are alike.
    """
    from alnair.live import namespaces

    if namespace is not None and (text := await namespaces.unknown(client, namespace)):
        raise typer.BadParameter(text, param_hint="--namespace")
