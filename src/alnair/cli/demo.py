"""`alnair demo`: from nothing to a scheduled production trace, in one command."""

from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.cluster_selection import ask
from alnair.cli.failures import FAILED, INTERRUPTED, expected

if TYPE_CHECKING:
    from alnair.checker.cluster import Finding
    from alnair.kube.access.connection import Connection
    from alnair.live.replay.session import ReplayOutcome


def demo(
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="Which local cluster to use.")
    ] = "alnair",
    pods: Annotated[
        int, typer.Option("--pods", min=1, max=8152, metavar="N", help="Replay the first N pods.")
    ] = 2000,
    real_node: Annotated[
        bool,
        typer.Option("--real-node", help="Share a GPU of a real node instead (Linux, root)."),
    ] = False,
) -> None:
    """Start a real cluster and place 2,000 pods of a production GPU trace on it.

    Starts a local cluster with Alnair's scheduler (see 'alnair up'), replays the first pods of
    the openb trace of Alibaba (see 'alnair replay'), proves that no promise is broken (see 'alnair
    check'), and leaves the cluster running for a look around. Run again, it starts the replay anew.

    With --real-node the cluster has a node that runs containers, on fake GPUs. Alnair is installed
    there by its chart, where images can be built (see 'alnair up --install'). Two pods share a GPU:
    it shows which part of its time each had, and what the one read that asked for more memory than
    its slice has.

    Examples:
      alnair demo
      alnair demo --name mine --pods 500
      alnair demo --real-node
    """
    if real_node:
        _share_a_gpu(name)
        return
    import asyncio

    from alnair.cli.progress import Display
    from alnair.kube.access import client_config
    from alnair.kube.errors import KubeError
    from alnair.local.controlplane import LocalCluster
    from alnair.local.errors import LocalClusterError

    with expected(KubeError, LocalClusterError, OSError):
        _heading(f"1. A real Kubernetes cluster, {name}")
        with Display() as display:
            cluster = LocalCluster(name, scheduler=True, report=display)
            cluster.prepare()
            asyncio.run(cluster.up())
        connection = client_config.load(cluster.kubeconfig())
        _heading(f"2. The first {pods} pods of the openb trace, placed by Alnair")
        outcome = _replay(connection, pods)
        _heading("3. The independent check: is every promise kept?")
        finding = _check(connection, pods)
    _heading("4. Look around")
    _where_to_look(name, str(cluster.kubeconfig()))
    if outcome.problem or outcome.report.pending or finding.violations:
        typer.echo("\nThe demo has failed: see above.", err=True)
        raise typer.Exit(FAILED)


def _share_a_gpu(name: str) -> None:
    import asyncio

    from alnair.cli import real_node_demo
    from alnair.cli.progress import Display
    from alnair.kube.access import client_config
    from alnair.kube.errors import KubeError
    from alnair.local.controlplane import LocalCluster
    from alnair.local.errors import LocalClusterError
    from alnair.local.own_images import requirements
    from alnair.local.real_node.choice import RealNodeWish

    errors = (KubeError, LocalClusterError, OSError, real_node_demo.DemoError)
    with expected(*errors), Display() as display:
        _heading(f"1. A real Kubernetes cluster, {name}, with a real node")
        before = LocalCluster(name).remembered()
        # A node that is there stays as it is.
        installed = bool(before and before.real_node and before.real_node.installed)
        if before is None or before.real_node is None:
            said = requirements.problem()
            installed = said is None
            if said:
                display.step(f"Alnair runs beside the cluster, and not as its pods: {said}")
        wish = RealNodeWish(wanted=True, installed=installed)
        scheduler = None if installed else True
        cluster = LocalCluster(name, scheduler=scheduler, real_node=wish, report=display)
        cluster.prepare()
        asyncio.run(cluster.up())
        connection = client_config.load(cluster.kubeconfig())
        _heading("2. Two pods on one of its GPUs")
        tenants = ask(connection, "demo", lambda c: real_node_demo.share(c, display))
        _heading("3. What each of them got")
        problem = real_node_demo.show(tenants)
        _heading("4. Look around")
        typer.echo(real_node_demo.where_to_look(name, str(cluster.kubeconfig())))
    if problem:
        typer.echo(f"\nThe demo has failed: {problem}.", err=True)
        raise typer.Exit(FAILED)


def _heading(text: str) -> None:
    typer.secho(f"\n{text}", bold=True)


def _replay(connection: "Connection", pods: int) -> "ReplayOutcome":
    from alnair.cli.text import replay_report
    from alnair.cli.text.console import console
    from alnair.cli.trace_replay import carry_out
    from alnair.live.replay.session import Settings
    from alnair.traces import openb_files
    from alnair.traces.arrivals import in_trace_order

    trace = openb_files.load()
    arrivals = in_trace_order(trace.pods)[:pods]
    settings = Settings(fresh=True)
    outcome = ask(connection, "replay", lambda c: carry_out(c, trace, arrivals, settings))
    replay_report.show(outcome.report, console())
    if outcome.problem:
        typer.echo(f"alnair: {outcome.problem}", err=True)
    if outcome.interrupted:
        raise typer.Exit(INTERRUPTED)
    return outcome


def _check(connection: "Connection", pods: int) -> "Finding":
    from alnair.checker.objects.api_names import SCHEDULERS
    from alnair.live import checking

    namespaces = frozenset({"openb"})
    finding = ask(connection, "check", lambda c: checking.check(c, SCHEDULERS, namespaces, pods))
    for violation in finding.violations:
        typer.echo(str(violation))
    typer.echo(finding.summary())
    return finding


def _where_to_look(name: str, kubeconfig: str) -> None:
    import shlex
    import shutil

    option = "" if name == "alnair" else f" --name {name}"
    typer.echo(
        f"The cluster keeps running:\n\n"
        f"  export KUBECONFIG={shlex.quote(kubeconfig)}\n"
        f"  kubectl get nodes -L nvidia.com/gpu.product\n"
        f"  kubectl get pods -n openb -o wide\n"
        f"  kubectl get pod -n openb openb-pod-0001 -o yaml   (see the annotation gpu-assignment)\n"
        f"  kubectl get events -n openb\n"
        f"  alnair status{option}\n"
        f"  alnair check{option} --watch                      (judges every instant)\n\n"
        f"Stop it, and leave nothing behind: alnair down{option}"
    )
    if not shutil.which("kubectl"):
        typer.echo("(There is no kubectl on PATH; any version from 1.35 to 1.37 works.)")
