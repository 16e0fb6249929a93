"""`alnair controller`: the process that keeps statuses true and operates training jobs."""

from typing import Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions
from alnair.cli.controller_history import HistoryOptions
from alnair.cli.controller_idle import IdleOptions
from alnair.cli.controller_rebalancing import RebalancingOptions
from alnair.cli.failures import expected
from alnair.cli.option_groups import grouped
from alnair.cli.serving_options import (
    SecureServing,
    TlsCertificate,
    TlsKey,
    certificate_files,
)
from alnair.kube.lease_timings import LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD


@grouped
def controller(
    *,
    cluster: ClusterOptions,
    history: HistoryOptions,
    idle: IdleOptions,
    rebalancing: RebalancingOptions,
    leader_elect: Annotated[
        bool, typer.Option(help="Write only while holding the lease; several may then run.")
    ] = True,
    identity: Annotated[
        str | None, typer.Option(help="Name in the lease; default host and a random part.")
    ] = None,
    lease_duration: Annotated[
        int, typer.Option(help="Seconds without renewal after which another may lead.")
    ] = LEASE_DURATION,
    renew_deadline: Annotated[
        float, typer.Option(help="Seconds without renewal after which a leader stops writing.")
    ] = RENEW_DEADLINE,
    retry_period: Annotated[float, typer.Option(help="Seconds between renewals.")] = RETRY_PERIOD,
    host: Annotated[str, typer.Option(help="Address to serve health on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to serve health on; 0 takes a free one.")
    ] = 0,
    secure_serving: SecureServing = None,
    tls_cert_file: TlsCertificate = None,
    tls_private_key_file: TlsKey = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Operate training jobs, and keep the status of PodGroups and ElasticQuotas true.

    Of a PodGroup: phase, counts, conditions, and an event when one fails. Of an
    ElasticQuota: what is used. Of a training job (ElasticHorovodJob, HorovodJob,
    ElasticTorchJob): its workers and launcher, as many as fit. With --history, the
    lives of all jobs are kept, too.

    Examples:
      alnair controller
      alnair controller --kubeconfig ~/.kube/config
      alnair controller --no-leader-elect
      alnair controller --history /var/lib/alnair/history.db
      alnair controller --evict-idle 1h
      alnair controller --rebalance-every 10m
    """
    import asyncio
    import logging
    import platform
    import uuid

    from alnair.kube.errors import KubeError
    from alnair.local.errors import LocalClusterError
    from alnair.processes.controller.process import Settings, serve
    from alnair.serving.server import ServeError

    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    # Of its migrations; what went wrong is said as an error.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    if not lease_duration > renew_deadline > retry_period > 0:
        raise typer.BadParameter(
            "it must be --lease-duration > --renew-deadline > --retry-period > 0"
        )
    settings = Settings(
        identity=identity or f"{platform.node()}_{uuid.uuid4()}",
        host=host,
        port=port,
        secure=bool(secure_serving),
        certificate=certificate_files(bool(secure_serving), tls_cert_file, tls_private_key_file),
        leader_elect=leader_elect,
        lease_duration=lease_duration,
        renew_deadline=renew_deadline,
        retry_period=retry_period,
        history=history.settings(),
        idle=idle.settings(),
        rebalancing=rebalancing.bounds(),
    )
    with expected(KubeError, ServeError, LocalClusterError, prefix="error: "):
        asyncio.run(serve(settings, cluster.connection()))
