"""Options of `alnair scheduler` that override its configuration file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from alnair.cli.cluster_selection import ClusterName, connection
from alnair.cli.option_groups import OptionGroup
from alnair.cli.serving_options import SecureServing, TlsCertificate, TlsKey
from alnair.kube.lease_timings import LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD

if TYPE_CHECKING:
    from alnair.configuration.scheduler_file import Configuration
    from alnair.kube.access.connection import Connection


class OverrideOptions(OptionGroup, frozen=True, kw_only=True):
    """What is given here is so, whatever the configuration file says."""

    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Kubeconfig of the cluster.")
    ] = None
    kube_context: Annotated[
        str | None, typer.Option("--context", metavar="NAME", help="Context of the kubeconfig.")
    ] = None
    name: ClusterName = None
    only: Annotated[
        bool, typer.Option("--only", help="Schedule the pods of default-scheduler too.")
    ] = False
    dry_run: Annotated[
        bool | None,
        typer.Option("--dry-run", help="Decide and say so; write nothing to the API server."),
    ] = None
    leader_elect: Annotated[
        bool | None,
        typer.Option(
            "--leader-elect/--no-leader-elect",
            help="Schedule only while holding the lease; several may then run. On by default.",
        ),
    ] = None
    lease_name: Annotated[
        str | None, typer.Option(help="Name of the lease; default alnair-scheduler.")
    ] = None
    identity: Annotated[
        str | None, typer.Option(help="Name in the lease; default host and a random part.")
    ] = None
    lease_duration: Annotated[
        int | None,
        typer.Option(
            help=f"Seconds without renewal until another may lead; default {LEASE_DURATION}."
        ),
    ] = None
    renew_deadline: Annotated[
        float | None,
        typer.Option(
            help="Seconds without renewal until a leader stops binding; "
            f"default {RENEW_DEADLINE:g}."
        ),
    ] = None
    retry_period: Annotated[
        float | None, typer.Option(help=f"Seconds between renewals; default {RETRY_PERIOD:g}.")
    ] = None
    host: Annotated[
        str | None, typer.Option(help="Address to serve health and metrics on; default 127.0.0.1.")
    ] = None
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Its port; by default a free one.")
    ] = None
    secure_serving: SecureServing = None
    tls_cert_file: TlsCertificate = None
    tls_private_key_file: TlsKey = None
    seed: Annotated[
        int | None, typer.Option(help="Order in which equally good nodes are taken; default 0.")
    ] = None
    binders: Annotated[
        int | None, typer.Option(min=1, max=256, help="Bindings under way at once; default 32.")
    ] = None
    log_format: Annotated[
        Literal["text", "json"] | None,
        typer.Option(help="Log lines, or JSON objects; default text."),
    ] = None
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False

    def applied_to(self, configuration: "Configuration") -> "Configuration":
        """Return the configuration with these options in force."""
        from alnair.configuration import scheduler_file as conf

        values: dict[str, dict[str, object]] = {
            "leader_election": {
                "leader_elect": self.leader_elect,
                "resource_name": self.lease_name,
                "identity": self.identity,
                "lease_duration": conf.duration(self.lease_duration),
                "renew_deadline": conf.duration(self.renew_deadline),
                "retry_period": conf.duration(self.retry_period),
            },
            "client_connection": {
                "kubeconfig": _text(self.kubeconfig),
                "context": self.kube_context,
                "bindings": self.binders,
            },
            "serving": {
                "host": self.host,
                "port": self.port,
                "secure": self.secure_serving,
                "tls_cert_file": _text(self.tls_cert_file),
                "tls_private_key_file": _text(self.tls_private_key_file),
            },
            "logging": {"format": self.log_format, "level": "debug" if self.verbose else None},
            "": {"seed": self.seed, "dry_run": self.dry_run},
        }
        wanted = conf.override(configuration, values)
        return conf.with_default_scheduler(wanted) if self.only else wanted

    def connection(self, configuration: "Configuration") -> "Connection":
        """Find the cluster that the configuration in force means; raises as `connection` does."""
        wanted = configuration.client_connection
        file = Path(wanted.kubeconfig).expanduser() if wanted.kubeconfig else None
        return connection(file, wanted.context or None, self.name)


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
