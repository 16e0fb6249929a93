"""`alnair agent`: what runs on a GPU node, and the commands that try a slice there by hand."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from alnair.processes.agent.admin_socket import AgentStatus, Answer, Gpu, Request

DEFAULT_FOLDER = Path("/run/alnair/agent")

GpuOption = Annotated[
    list[str], typer.Option("--gpu", metavar="GPU", help="UUID or index; several: repeat it.")
]
MemoryOption = Annotated[
    int, typer.Option("--memory", min=0, metavar="MIB", help="Of each GPU; 0: no limit.")
]
ComputeOption = Annotated[
    int,
    typer.Option("--compute", min=0, max=100, metavar="PERCENT", help="Of each GPU; 0: no limit."),
]
SoftOption = Annotated[bool, typer.Option("--soft", help="May use what others leave.")]
FolderOption = Annotated[
    Path,
    typer.Option("--folder", metavar="DIR", help="The agent's state, on a tmpfs."),
]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The container's.")]
Json = Annotated[bool, typer.Option("--json", help="Write the result as one line of JSON.")]

app = typer.Typer(invoke_without_command=True)
containers = typer.Typer(no_args_is_help=True)
app.add_typer(containers, name="container")


@app.callback()
def agent(
    context: typer.Context,
    folder: FolderOption = DEFAULT_FOLDER,
    metrics: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Where to serve metrics; port 0 takes a free one."),
    ] = "127.0.0.1:9464",
    policy: Annotated[
        Literal["warn", "throttle", "evict"],
        typer.Option(help="What happens to a container that is found beyond its slice."),
    ] = "warn",
    node: Annotated[
        str, typer.Option(metavar="NAME", help="This node; default the host's name.")
    ] = "",
    kubeconfig: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Of the cluster that hears of it; default none: log."),
    ] = None,
    in_cluster: Annotated[
        bool, typer.Option("--in-cluster", help="The cluster is the one that this pod runs in.")
    ] = False,
    mps: Annotated[
        bool, typer.Option("--mps", help="Run an MPS daemon for containers that share SMs.")
    ] = False,
    mps_percent: Annotated[
        int, typer.Option(min=1, max=100, metavar="PERCENT", help="SMs of any MPS client, at most.")
    ] = 100,
    mps_memory: Annotated[
        int,
        typer.Option(min=0, metavar="MIB", help="Memory of any MPS client on each GPU; 0: all."),
    ] = 0,
    context_mib: Annotated[
        int,
        typer.Option(
            min=0,
            max=8192,
            metavar="MIB",
            help="Cost of a CUDA context on each GPU; 0: measured at the first start.",
        ),
    ] = 0,
    no_probe: Annotated[
        bool,
        typer.Option(
            "--no-probe", help="Do not measure: contexts that are not known cost 512 MiB."
        ),
    ] = False,
    log_format: Annotated[
        Literal["text", "json"], typer.Option(help="Log lines, or JSON objects.")
    ] = "text",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Serve the slices of this node's GPUs to its containers. Needs root.

    It tells each container its limits, lets in only processes that the kernel says are of it, keeps
    account of what they use, and finds those that use more than theirs. Stopped and started again,
    or killed, it takes over the containers that run.

    Examples:
      alnair agent
      alnair agent --policy evict --node gpu-7 --kubeconfig agent.kubeconfig
      alnair agent --mps --mps-percent 50
      alnair agent status
    """
    if context.invoked_subcommand:
        if folder != DEFAULT_FOLDER:
            raise typer.BadParameter(
                f"give it after the command: alnair agent {context.invoked_subcommand} ...",
                param_hint="--folder",
            )
        return
    import asyncio
    import platform

    from alnair.kube.errors import KubeError
    from alnair.node.vgpu.journal import JournalError
    from alnair.processes.agent.process import Settings, serve
    from alnair.serving import logs
    from alnair.serving.server import ServeError

    host, _, port = metrics.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise typer.BadParameter(f"{metrics!r} is not HOST:PORT", param_hint="--metrics")
    logs.set_up(log_format, "debug" if verbose else "info")
    settings = Settings(
        folder=folder,
        host=host,
        port=int(port),
        policy=policy,
        node=node or platform.node(),
        kubeconfig=kubeconfig,
        in_cluster=in_cluster,
        mps=mps,
        mps_percent=mps_percent,
        mps_memory_mib=mps_memory,
        context_mib=context_mib,
        probes=not no_probe,
    )
    try:
        asyncio.run(serve(settings))
    except (KubeError, ServeError, JournalError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error


@app.command("status")
def status(folder: FolderOption = DEFAULT_FOLDER, json: Json = False) -> None:
    """Show the node's GPUs and the slices that its containers have and use.

    Examples:
      alnair agent status
      alnair agent status --json | jq .containers
    """
    import msgspec

    shown = _status(folder)
    if json:
        typer.echo(msgspec.json.encode(shown).decode())
        return
    typer.echo(f"agent {shown.pid} in {shown.folder}, {shown.tick_ms} ms a tick")
    for gpu in shown.gpus:
        typer.echo(
            f"GPU {gpu.index}  {gpu.uuid}  {gpu.model}  {gpu.memory_mib} MiB, {_context(gpu)}"
        )
    if shown.nvml:
        typer.echo(f"NVML: {shown.nvml}")
    _isolation(shown)
    for name, problem in sorted(shown.damaged.items()):
        typer.echo(f"container {name} is refused, for its folder is damaged: {problem}")
    _table(shown)


@app.command("run", context_settings={"ignore_unknown_options": True})
def run(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="What to run.")],
    gpu: GpuOption,
    memory: MemoryOption = 0,
    compute: ComputeOption = 0,
    soft: SoftOption = False,
    library: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="libalnair_vgpu.so; default that of 'make -C native'."),
    ] = None,
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Run a program with slices of GPUs, where an agent serves: the quickest way to try one.

    The program gets a control group and a mount namespace of its own; ends as it ends. Needs root.

    Examples:
      alnair agent run --gpu 0 --memory 8192 --compute 50 -- python train.py
      alnair agent run --gpu 0 --memory 2048 --soft -- nvidia-smi
    """
    from alnair.node.vgpu.assignment import Share
    from alnair.processes.agent.trial_run import TrialError, run_with_slices

    shares = tuple(Share(one, memory, compute, soft=soft) for one in gpu)
    try:
        code = run_with_slices(folder, shares, command, library)
    except TrialError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    raise typer.Exit(code)


@containers.callback()
def container() -> None:
    """Give containers slices of GPUs by hand, where no device plugin does.

    Examples:
      alnair agent container add mine --gpu 0 --memory 8192 --compute 50 --cgroup /mine
      alnair agent container list
    """


@containers.command("add")
def add(
    name: NameArgument,
    gpu: GpuOption,
    memory: MemoryOption = 0,
    compute: ComputeOption = 0,
    soft: SoftOption = False,
    low_priority: Annotated[bool, typer.Option("--low-priority", help="Yields to others.")] = False,
    container_id: Annotated[
        str, typer.Option(metavar="ID", help="The runtime's id of the container.")
    ] = "",
    pod: Annotated[str, typer.Option(metavar="UID", help="Of the pod.")] = "",
    cgroup: Annotated[
        str, typer.Option(metavar="PATH", help="A control group that its processes are below.")
    ] = "",
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Prepare a container: its processes are told by id, pod or control group.

    Prints the folder to mount read-only at /run/alnair/vgpu, with its file `counters` writable.

    Examples:
      alnair agent container add mine --gpu 0 --memory 8192 --compute 50 --cgroup /mine
      alnair agent container add both --gpu 0 --gpu 1 --memory 4096 --soft --pod UID
    """
    from alnair.node.vgpu.assignment import Assignment, Share, Who
    from alnair.processes.agent.admin_socket import Add

    shares = tuple(Share(one, memory, compute, soft=soft, low_priority=low_priority) for one in gpu)
    who = Who(container=container_id, pod=pod, cgroup=cgroup)
    _ask(folder, Add(Assignment(name, who, shares, keep=True)))
    typer.echo(str(folder / "containers" / name))


@containers.command("change")
def change(
    name: NameArgument,
    gpu: Annotated[
        str | None, typer.Option(metavar="GPU", help="Only on this one; default on all it has.")
    ] = None,
    memory: Annotated[
        int | None, typer.Option(min=0, metavar="MIB", help="Of each GPU; 0: no limit.")
    ] = None,
    compute: Annotated[
        int | None,
        typer.Option(min=0, max=100, metavar="PERCENT", help="Of each GPU; 0: no limit."),
    ] = None,
    soft: Annotated[
        bool | None, typer.Option("--soft/--hard", help="May use what others leave, or not.")
    ] = None,
    low_priority: Annotated[
        bool | None, typer.Option("--low-priority/--normal-priority", help="Yields to others.")
    ] = None,
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Change the limits of a container while it runs.

    Examples:
      alnair agent container change mine --compute 25
      alnair agent container change mine --memory 16384 --soft
    """
    from alnair.processes.agent.admin_socket import Change

    if all(one is None for one in (memory, compute, soft, low_priority)):
        raise typer.BadParameter(
            "nothing is to change: give --memory, --compute, --soft, --hard, --low-priority or "
            "--normal-priority"
        )
    _ask(folder, Change(name, gpu, memory, compute, soft, low_priority))


@containers.command("remove")
def remove(name: NameArgument, folder: FolderOption = DEFAULT_FOLDER) -> None:
    """Take the slices of a container back, and remove its folder.

    Examples:
      alnair agent container remove mine
    """
    from alnair.processes.agent.admin_socket import Remove

    _ask(folder, Remove(name))


@containers.command("list")
def show(folder: FolderOption = DEFAULT_FOLDER, json: Json = False) -> None:
    """List the containers with their slices.

    Examples:
      alnair agent container list
    """
    import msgspec

    shown = _status(folder)
    if json:
        typer.echo(msgspec.json.encode(shown.containers).decode())
    else:
        _table(shown)


def _ask(folder: Path, request: "Request") -> "Answer":
    from alnair.processes.agent.admin_socket import AdminError, ask

    try:
        answer = ask(folder, request)
    except AdminError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    if answer.warning:
        typer.echo(f"warning: {answer.warning}", err=True)
    return answer


def _status(folder: Path) -> "AgentStatus":
    from alnair.processes.agent.admin_socket import Show

    found = _ask(folder, Show()).status
    assert found is not None
    return found


def _isolation(shown: "AgentStatus") -> None:
    if shown.isolation is None:
        return
    typer.echo(f"isolation {shown.isolation.label}: {shown.isolation.promise}")
    for standing in shown.isolation.standings:
        if standing.missing:
            typer.echo(f"not tier {standing.tier.value}: {standing.missing}")
    if shown.mps is not None:
        restarts = f", {shown.mps.restarts} restarts" if shown.mps.restarts else ""
        typer.echo(f"MPS: {shown.mps.state.value}, {len(shown.mps.clients)} clients{restarts}")


def _context(gpu: "Gpu") -> str:
    if gpu.context_bytes:
        return f"a context {gpu.context_bytes / 2**20:.0f} MiB"
    return f"a context 512 MiB ({gpu.context_problem})"


def _table(shown: "AgentStatus") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("container", "state", "processes", "GPU", "memory MiB", "used", "compute")
    index = {gpu.uuid: str(gpu.index) for gpu in shown.gpus}
    for one in shown.containers:
        for row, share in enumerate(one.assignment.shares):
            used = (one.held_bytes[row] + one.overhead_bytes[row]) / 2**20
            kind = "soft" if share.soft else "hard"
            table.add_row(
                one.assignment.name if not row else "",
                one.state if not row else "",
                str(one.processes) if not row else "",
                index.get(share.uuid, share.uuid),
                str(share.memory_mib or "-"),
                f"{used:.0f}",
                f"{share.compute_percent} % {kind}" if share.compute_percent or share.soft else "-",
            )
    Console(highlight=False).print(table if shown.containers else "no containers")
