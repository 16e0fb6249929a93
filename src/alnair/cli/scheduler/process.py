"""`alnair scheduler`: the scheduler process."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from alnair.cli.failures import expected


def scheduler(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Configuration file; the options below override it."),
    ] = None,
    validate: Annotated[
        bool, typer.Option("--validate", help="Check the configuration, and end.")
    ] = False,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the configuration in force, and end.")
    ] = False,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Path of a kubeconfig; default as kubectl, or in-cluster.")
    ] = None,
    kube_context: Annotated[
        str | None, typer.Option("--context", help="Context of the kubeconfig.")
    ] = None,
    only: Annotated[
        bool, typer.Option("--only", help="Schedule the pods of default-scheduler too.")
    ] = False,
    dry_run: Annotated[
        bool | None,
        typer.Option("--dry-run", help="Decide and say so; write nothing to the API server."),
    ] = None,
    leader_elect: Annotated[
        bool | None,
        typer.Option(
            "--leader-elect/--no-leader-elect",
            help="Schedule only while holding the lease; several may then run. On by default.",
        ),
    ] = None,
    lease_name: Annotated[
        str | None, typer.Option(help="Name of the lease; default alnair-scheduler.")
    ] = None,
    identity: Annotated[
        str | None, typer.Option(help="Name in the lease; default host and a random part.")
    ] = None,
    lease_duration: Annotated[
        int | None, typer.Option(help="Seconds without renewal until another may lead; default 12.")
    ] = None,
    renew_deadline: Annotated[
        float | None,
        typer.Option(help="Seconds without renewal until a leader stops binding; default 8."),
    ] = None,
    retry_period: Annotated[
        float | None, typer.Option(help="Seconds between renewals; default 2.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Address to serve health and metrics on; default 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Its port; by default a free one.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Order in which equally good nodes are taken; default 0.")
    ] = None,
    binders: Annotated[
        int | None, typer.Option(min=1, max=256, help="Bindings under way at once; default 32.")
    ] = None,
    log_format: Annotated[
        Literal["text", "json"] | None,
        typer.Option(help="Log lines, or JSON objects; default text."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Schedule the pods that name one of our profiles as their scheduler.

    Examples:
      alnair scheduler --kubeconfig ~/.kube/config
      alnair scheduler --config scheduler.yaml --validate
      alnair scheduler --dry-run --log-format json
    """
    if context.invoked_subcommand:
        return
    import asyncio

    import msgspec

    from alnair.configuration import scheduler_file as conf
    from alnair.configuration.profile_assembly import assemble
    from alnair.kube.errors import KubeError
    from alnair.processes.scheduler.process import serve
    from alnair.serving import logs
    from alnair.serving.server import ServeError

    with expected(conf.ConfigurationError, prefix="error: "):
        wanted = conf.load(config)
        wanted = conf.override(
            wanted,
            {
                "leader_election": {
                    "leader_elect": leader_elect,
                    "resource_name": lease_name,
                    "identity": identity,
                    "lease_duration": conf.duration(lease_duration),
                    "renew_deadline": conf.duration(renew_deadline),
                    "retry_period": conf.duration(retry_period),
                },
                "client_connection": {
                    "kubeconfig": str(kubeconfig) if kubeconfig is not None else None,
                    "context": kube_context,
                    "bindings": binders,
                },
                "serving": {"host": host, "port": port},
                "logging": {"format": log_format, "level": "debug" if verbose else None},
                "": {"seed": seed, "dry_run": dry_run},
            },
        )
        if only:
            wanted = conf.with_default_scheduler(wanted)
        assembly = assemble(wanted, str(config) if config is not None else "command line")
    if print_config:
        full = msgspec.structs.replace(wanted, profiles=assembly.explicit())
        typer.echo(conf.dump(full), nl=False)
    if validate and not print_config:
        typer.echo(f"{config or 'the configuration'} is valid")
    if print_config or validate:
        return
    logs.set_up(wanted.logging.format, wanted.logging.level)
    with expected(KubeError, ServeError, prefix="error: "):
        asyncio.run(serve(wanted, assembly))
