"""`alnair agent container`: slices of GPUs for containers, given by hand."""

from typing import Annotated

import typer

from alnair.cli.agent.asking import ask, ask_status
from alnair.cli.agent.slice_options import (
    DEFAULT_FOLDER,
    BorrowOption,
    ComputeOption,
    FolderOption,
    GpuOption,
    MemoryOption,
    NameArgument,
    ShownNameArgument,
    SoftOption,
    SwapOption,
)
from alnair.cli.json_output import json_option, write_json

app = typer.Typer(no_args_is_help=True)


@app.callback()
def container() -> None:
    """Give containers slices of GPUs by hand, where no device plugin does.

    Examples:
      alnair agent container add mine --gpu 0 --memory 8192 --compute 50 --cgroup /mine
      alnair agent container list
    """


@app.command("add")
def add(
    name: NameArgument,
    gpu: GpuOption,
    memory: MemoryOption = 0,
    compute: ComputeOption = 0,
    soft: SoftOption = False,
    swap: SwapOption = 0,
    borrow: BorrowOption = False,
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
    from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
    from alnair.processes.agent.admin_socket import Add

    shares = tuple(
        Share(
            one,
            memory,
            compute,
            soft=soft,
            low_priority=low_priority,
            swap_mib=swap,
            borrows=borrow,
        )
        for one in gpu
    )
    who = ContainerMatch(container=container_id, pod=pod, cgroup=cgroup)
    ask(folder, Add(ContainerSlices(name, who, shares, keep=True)))
    typer.echo(str(folder / "containers" / name))


@app.command("change")
def change(
    name: ShownNameArgument,
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
    swap: Annotated[
        int | None, typer.Option(min=0, metavar="MIB", help="Of the host, beyond --memory.")
    ] = None,
    borrow: Annotated[
        bool | None,
        typer.Option("--borrow/--no-borrow", help="May exceed --memory by what nobody has."),
    ] = None,
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Change the limits of a container while it runs.

    Examples:
      alnair agent container change mine --compute 25
      alnair agent container change mine --memory 16384 --soft
    """
    from alnair.processes.agent.admin_socket import Change

    if all(one is None for one in (memory, compute, soft, low_priority, swap, borrow)):
        raise typer.BadParameter(
            "nothing is to change: give --memory, --compute, --soft, --hard, --low-priority, "
            "--normal-priority, --swap, --borrow or --no-borrow"
        )
    ask(folder, Change(name, gpu, memory, compute, soft, low_priority, swap, borrow))


@app.command("remove")
def remove(name: ShownNameArgument, folder: FolderOption = DEFAULT_FOLDER) -> None:
    """Take the slices of a container back, and remove its folder.

    Examples:
      alnair agent container remove mine
      alnair agent container remove team/job-7/main
    """
    from alnair.processes.agent.admin_socket import Remove

    ask(folder, Remove(name))


@app.command("suspend")
def suspend(name: NameArgument, folder: FolderOption = DEFAULT_FOLDER) -> None:
    """Have a container's processes rest: what they hold of GPUs goes to the host's memory.

    Of a container of no pod, where the agent runs with --suspend; `agent status` tells when it is
    done.

    Examples:
      alnair agent container suspend mine
    """
    from alnair.processes.agent.admin_socket import Suspend

    ask(folder, Suspend(name, on=True))


@app.command("resume")
def resume(name: NameArgument, folder: FolderOption = DEFAULT_FOLDER) -> None:
    """Have the processes of a suspended container go on, once their memory is free again.

    Examples:
      alnair agent container resume mine
    """
    from alnair.processes.agent.admin_socket import Suspend

    ask(folder, Suspend(name, on=False))


@app.command("list")
def show(
    folder: FolderOption = DEFAULT_FOLDER, json: Annotated[bool, json_option("the result")] = False
) -> None:
    """List the containers with their slices.

    Examples:
      alnair agent container list
    """
    from alnair.cli.text import agent_status
    from alnair.cli.text.console import console

    shown = ask_status(folder)
    if json:
        write_json(shown.containers)
    else:
        agent_status.show_containers(shown, console(wide=True))
