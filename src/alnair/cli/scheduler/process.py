"""`alnair scheduler`: the scheduler process."""

from pathlib import Path
from typing import Annotated

import typer

from alnair.cli.failures import expected
from alnair.cli.option_groups import grouped
from alnair.cli.scheduler.override_options import OverrideOptions


@grouped
def scheduler(
    *,
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
    overrides: OverrideOptions,
) -> None:
    """Schedule the pods that name one of our profiles as their scheduler.

    A configuration file that changes is read again: profiles, backfill, logging and seed are taken
    over, for all else it says that it needs a restart.

    Examples:
      alnair scheduler
      alnair scheduler --name two
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
    from alnair.local.errors import LocalClusterError
    from alnair.processes.scheduler.configuration_file import Loaded, Source
    from alnair.processes.scheduler.process import serve
    from alnair.serving import logs
    from alnair.serving.server import ServeError

    def read() -> Loaded:
        found = overrides.applied_to(conf.load(config))
        folder = config.parent if config is not None else None
        return Loaded(found, assemble(found, str(config or "command line"), folder))

    with expected(conf.ConfigurationError, prefix="error: "):
        loaded = read()
    wanted, assembly = loaded.configuration, loaded.assembly
    if print_config:
        full = msgspec.structs.replace(wanted, profiles=assembly.explicit())
        typer.echo(conf.dump(full), nl=False)
    if validate and not print_config:
        typer.echo(f"{config or 'the configuration'} is valid")
    if print_config or validate:
        return
    logs.set_up(wanted.logging.format, wanted.logging.level)
    with expected(KubeError, ServeError, LocalClusterError, prefix="error: "):
        asyncio.run(serve(loaded, Source(config, read), overrides.connection(wanted)))
