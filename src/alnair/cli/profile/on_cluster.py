"""`alnair profile pair --on-cluster`: the workloads run as Jobs on one GPU of a node."""

from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions, ask
from alnair.cli.option_groups import OptionGroup
from alnair.cli.profile.measured_gpu import MeasuredGpu, limits
from alnair.cli.profile.pair_options import SharingOptions, TimeOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from alnair.node.pairing.measuring import Times
    from alnair.node.pairing.workload import Command

#: MiB of a GPU's memory that stay free beside two slices: what the driver keeps for itself.
_LEFT = 1024


class JobRunOptions(OptionGroup, frozen=True, kw_only=True):
    """Where on a cluster."""

    on_cluster: Annotated[
        bool,
        typer.Option("--on-cluster", help="Run them as Jobs that share a GPU of a cluster's node."),
    ] = False
    node: Annotated[
        str | None,
        typer.Option("--node", metavar="NODE", help="Which; default the only one with GPUs."),
    ] = None
    image: Annotated[
        str,
        typer.Option("--image", metavar="IMAGE", help="Of the containers; has the commands."),
    ] = ""
    memory: Annotated[
        int,
        typer.Option("--memory", min=0, metavar="MIB", help="Of each slice; default half a GPU."),
    ] = 0
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", metavar="NS", help="Of the Jobs; default the context's."),
    ] = None


def cluster_gpu(
    run: JobRunOptions, cluster: ClusterOptions, sharing: SharingOptions, times: TimeOptions
) -> MeasuredGpu:
    """Look at the node; return what measures on it.

    Raises:
        RunError: There is no such node.
        KubeError: The cluster cannot be read.
    """
    from alnair.live.pairing.gpu_node import check_mps, gpu_node
    from alnair.live.pairing.measuring import cluster_rates
    from alnair.live.pairing.pair_job import JobOptions
    from alnair.model.pair_rates import MPS
    from alnair.node.pairing.measuring import LONGER

    if not run.image:
        raise typer.BadParameter("say which image has the commands", param_hint="--image")
    for given, option in ((sharing.fake_gpu, "--fake-gpu"), (sharing.gpu, "--gpu")):
        if given:
            raise typer.BadParameter("does not go with --on-cluster", param_hint=option)
    connection = cluster.connection()
    node = ask(connection, "profile", lambda client: gpu_node(client, run.node))
    if sharing.mode == MPS:
        check_mps(node)
    each = 300 + times.warm_up + LONGER * times.seconds
    options = JobOptions(
        namespace=run.namespace or connection.namespace,
        node=node.name,
        image=run.image,
        memory_mib=run.memory or max(1, (node.memory_mib - _LEFT) // 2),
        mode=sharing.mode,
        percent=limits(sharing),
        deadline=round(each),
    )

    def measure(commands: "Sequence[Command]", spans: "Times") -> tuple[float, ...]:
        return ask(
            connection, "profile", lambda client: cluster_rates(client, commands, spans, options)
        )

    return MeasuredGpu(node.model, measure=measure)


def refuse_alone(run: JobRunOptions, cluster: ClusterOptions) -> None:
    """Refuse options of a cluster where none is measured on."""
    if run.on_cluster:
        return
    given = {
        "--node": run.node,
        "--image": run.image,
        "--memory": run.memory,
        "--namespace": run.namespace,
        "--name, --kubeconfig, --context": cluster.are_given,
    }
    for option, value in given.items():
        if value:
            raise typer.BadParameter("goes with --on-cluster", param_hint=option)
