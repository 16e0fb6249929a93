"""`alnair scheduler`: the scheduler process, and what looks at it from outside."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from alnair.cli.connect import ContextOption, KubeconfigOption, NameOption
from alnair.kube.lease_timings import LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD

app = typer.Typer(invoke_without_command=True)


@app.callback()
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
        int | None,
        typer.Option(
            help=f"Seconds without renewal until another may lead; default {LEASE_DURATION}."
        ),
    ] = None,
    renew_deadline: Annotated[
        float | None,
        typer.Option(
            help="Seconds without renewal until a leader stops binding; "
            f"default {RENEW_DEADLINE:g}."
        ),
    ] = None,
    retry_period: Annotated[
        float | None, typer.Option(help=f"Seconds between renewals; default {RETRY_PERIOD:g}.")
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

    try:
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
    except conf.ConfigurationError as error:
        for line in str(error).splitlines():
            typer.echo(f"error: {line}", err=True)
        raise typer.Exit(1) from error
    if print_config:
        full = msgspec.structs.replace(wanted, profiles=assembly.explicit())
        typer.echo(conf.dump(full), nl=False)
    if validate and not print_config:
        typer.echo(f"{config or 'the configuration'} is valid")
    if print_config or validate:
        return
    logs.set_up(wanted.logging.format, wanted.logging.level)
    try:
        asyncio.run(serve(wanted, assembly))
    except (KubeError, ServeError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error


@app.command("snapshot")
def snapshot(
    file: Annotated[Path, typer.Argument(help="Where to save it.")],
    url: Annotated[
        str | None,
        typer.Option(help="Where the scheduler serves; by default what its lease says."),
    ] = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    name: NameOption = None,
    lease_name: Annotated[str, typer.Option(help="Name of the lease.")] = "alnair-scheduler",
) -> None:
    """Save what the leading scheduler knows, to decide again on it elsewhere.

    Examples:
      alnair scheduler snapshot pending.json.gz
      alnair scheduler snapshot pending.json.gz --name mine
      alnair scheduler snapshot pending.json.gz --url http://127.0.0.1:10260
    """
    import asyncio

    from alnair.cli.connect import connection
    from alnair.kube.errors import KubeError
    from alnair.live.snapshot_download import FetchError, fetch
    from alnair.local.errors import LocalClusterError
    from alnair.snapshots.snapshot import SnapshotError
    from alnair.snapshots.snapshot_profiles import decode

    try:
        data = asyncio.run(fetch(url, lambda: connection(kubeconfig, context, name), lease_name))
        taken = decode(data)
        file.write_bytes(data)
    except (FetchError, KubeError, LocalClusterError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error
    except SnapshotError as error:
        typer.echo(f"error: what the scheduler answered {error}", err=True)
        raise typer.Exit(1) from error
    except OSError as error:
        typer.echo(f"error: {file} cannot be written: {error.strerror or error}", err=True)
        raise typer.Exit(1) from error
    waiting = sum(not pod.node for pod in taken.pods)
    typer.echo(f"{file}: {len(taken.nodes)} nodes, {len(taken.pods)} pods, {waiting} of them wait")


@app.command("replay")
def replay(
    file: Annotated[Path, typer.Argument(help="A snapshot.")],
    pod: Annotated[
        str, typer.Option(metavar="NAMESPACE/NAME", help="Decide on this pod, and its gang, alone.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per pod.")] = False,
) -> None:
    """Decide again on what a snapshot holds, with the live scheduler's code; touches no cluster.

    The same snapshot gives the same decisions, every time and everywhere.

    Examples:
      alnair scheduler replay pending.json.gz
      alnair scheduler replay pending.json.gz --pod team-a/train-0
    """
    import msgspec

    from alnair.configuration.scheduler_file import ConfigurationError
    from alnair.snapshots.replay import replay as decide
    from alnair.snapshots.snapshot import SnapshotError
    from alnair.snapshots.snapshot_profiles import load

    try:
        outcomes = decide(load(file), str(file), pod)
    except (SnapshotError, ConfigurationError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error
    for outcome in outcomes:
        if as_json:
            typer.echo(msgspec.json.encode(outcome).decode())
        elif outcome.node:
            typer.echo(f"{outcome.pod}: {outcome.node}")
        else:
            typer.echo(f"{outcome.pod}: {'evicted: ' if outcome.evicted else ''}{outcome.message}")
        if not as_json:
            for node, score in outcome.best:
                typer.echo(f"  {node}: score {score}")
