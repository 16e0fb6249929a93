"""`alnair up`: a real Kubernetes cluster on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.json_output import json_option, write_json
from alnair.cli.local_clusters import LocalName, exit_by, reporting

if TYPE_CHECKING:
    from alnair.local.status import ClusterStatus
    from alnair.traces.openb import TraceNode


def up(
    name: LocalName = "alnair",
    nodes: Annotated[
        str | None,
        typer.Option(
            metavar="NODES",
            help="Simulate these GPU nodes: a number, or shapes such as 20x8xA100,4x0:cpu=32.",
        ),
    ] = None,
    gpus_per_node: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=64,
            metavar="G",
            help="With a number: GPUs on each; 0: CPU nodes; default 8.",
        ),
    ] = None,
    gpu_model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="With a number: their model, such as T4 or H100; default A100."
        ),
    ] = None,
    nodes_from: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Simulate the nodes of a CSV file (sn,cpu_milli,memory_mib,gpu,model; .gz too).",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=1024, max=65535, metavar="PORT", help="The API server's port; else a free one."
        ),
    ] = None,
    scheduler: Annotated[
        bool | None,
        typer.Option("--scheduler/--no-scheduler", help="Run alnair scheduler and controller too."),
    ] = None,
    real_node: Annotated[
        bool | None,
        typer.Option(
            "--real-node/--no-real-node", help="One real node too, with containers (Linux, root)."
        ),
    ] = None,
    real_gpus: Annotated[
        int | None, typer.Option(min=1, max=16, metavar="N", help="Its fake GPUs; else 2.")
    ] = None,
    real_gpu_model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Their model: h100, t4, ... (native/fakegpu/profiles)."),
    ] = None,
    install: Annotated[
        bool | None,
        typer.Option(
            "--install/--no-install",
            help="Install Alnair on the real node by its chart, as pods, as in any cluster.",
        ),
    ] = None,
    components: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Run only these; etcd and kube-apiserver always do."),
    ] = None,
    json: Annotated[bool, json_option("the result")] = False,
) -> None:
    """Start a real Kubernetes cluster on this machine, or repair and extend it.

    etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok run as processes of
    yours; no Docker, no root. The first start builds them (about 6 minutes), later ones take
    seconds. GPU nodes are simulated: real objects in the API; pods on them become Running, but no
    container runs.

    With --real-node, one more node has a kubelet, containerd, kube-proxy and DNS, in namespaces of
    its own, and fake GPUs with a driver that programs can use; it needs Linux and root. Its
    programs take 5 more minutes to build. Pods get there by nodeSelector
    ai.centaurus.io/real-node: "true"; images: alnair.local/cuda-load:local and
    alnair.local/python:local.

    With --install, Alnair's own parts are not processes beside the cluster but pods in it: their
    images are built here (1 minute; needs buildah), and Helm installs the chart.

    Examples:
      alnair up --nodes 4
      alnair up --nodes 20x8xA100,10x4xT4,4x0:cpu=32
      alnair up --nodes-from openb_node_list_gpu_node.csv --scheduler
      alnair up --name two --port 6443
      alnair up --nodes 4 --real-node --real-gpus 2 --real-gpu-model h100
      alnair up --real-node --install
    """
    with reporting() as display:
        import asyncio

        from alnair.local import nodelist
        from alnair.local.controlplane import LocalCluster
        from alnair.local.real_node.choice import RealNodeWish

        listed: list[TraceNode] = []
        if nodes_from is not None:
            listed += nodelist.read(nodes_from)
        if nodes is not None:
            listed += nodelist.wished(nodes, gpus_per_node, gpu_model)
        cluster = LocalCluster(
            name,
            components=components.split(",") if components is not None else None,
            scheduler=scheduler,
            real_node=RealNodeWish(real_node, real_gpus, real_gpu_model, install),
            port=port,
            report=display,
        )
        cluster.prepare()

        async def run() -> "ClusterStatus":
            from alnair.local.status import status

            await cluster.up()
            await cluster.add_nodes(listed)
            return await status(cluster)

        result = asyncio.run(run())
    if json:
        write_json(result)
    else:
        from alnair.cli.text import cluster_status

        typer.echo(cluster_status.how_to_use(result))
    exit_by(result)
