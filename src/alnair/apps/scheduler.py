"""`alnair scheduler`: the scheduler process."""

from pathlib import Path
from typing import Annotated

import typer


def scheduler(
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Path of a kubeconfig; default as kubectl, or in-cluster.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    leader_elect: Annotated[
        bool, typer.Option(help="Schedule only while holding the lease; several may then run.")
    ] = True,
    identity: Annotated[
        str | None, typer.Option(help="Name in the lease; default host and a random part.")
    ] = None,
    lease_duration: Annotated[
        int, typer.Option(help="Seconds without renewal after which another may lead.")
    ] = 12,
    renew_deadline: Annotated[
        float, typer.Option(help="Seconds without renewal after which a leader stops binding.")
    ] = 8.0,
    retry_period: Annotated[float, typer.Option(help="Seconds between renewals.")] = 2.0,
    host: Annotated[str, typer.Option(help="Address to serve health on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to serve health on; 0 takes a free one.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Order in which equally good nodes are taken.")] = 0,
    binders: Annotated[int, typer.Option(min=1, max=256, help="Bindings under way at once.")] = 32,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Schedule the pods that name one of our profiles as their scheduler.

    Examples:
      alnair scheduler --kubeconfig ~/.kube/config
      alnair scheduler --no-leader-elect --seed 7
    """
    import asyncio
    import logging
    import platform
    import uuid

    from alnair.apps.scheduling.process import Settings, serve
    from alnair.apps.scheduling.server import ServeError
    from alnair.kube.errors import KubeError

    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    if not lease_duration > renew_deadline > retry_period > 0:
        raise typer.BadParameter(
            "it must be --lease-duration > --renew-deadline > --retry-period > 0"
        )
    settings = Settings(
        kubeconfig=kubeconfig,
        context=context,
        identity=identity or f"{platform.node()}_{uuid.uuid4()}",
        lease_duration=lease_duration,
        renew_deadline=renew_deadline,
        retry_period=retry_period,
        host=host,
        port=port,
        leader_elect=leader_elect,
        seed=seed,
        binders=binders,
    )
    try:
        asyncio.run(serve(settings))
    except (KubeError, ServeError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error
