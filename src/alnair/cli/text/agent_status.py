"""What an agent says of its node, for people to read."""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from alnair.model.plurals import counted
from alnair.node.vgpu.containers.container_slices import ContainerSlices
from alnair.node.vgpu.pages.abi import CONTEXT_DEFAULT
from alnair.processes.agent.admin_socket import AgentStatus, GpuStatus


def lines(shown: AgentStatus) -> Iterator[str]:
    """Return the node's GPUs and how they are isolated, line by line."""
    yield f"agent {shown.pid} in {shown.folder}, {shown.tick_ms} ms a tick"
    for gpu in shown.gpus:
        yield f"GPU {gpu.index}  {gpu.uuid}  {gpu.model}  {gpu.memory_mib} MiB, {_context(gpu)}"
    if shown.nvml:
        yield f"NVML: {shown.nvml}"
    yield from _isolation(shown)
    for name, problem in sorted(shown.damaged.items()):
        yield f"container {name} is refused, for its folder is damaged: {problem}"


def _isolation(shown: AgentStatus) -> Iterator[str]:
    if shown.isolation is None:
        return
    yield f"isolation {shown.isolation.label}: {shown.isolation.promise}"
    for standing in shown.isolation.standings:
        if standing.missing:
            yield f"not tier {standing.tier.value}: {standing.missing}"
    if shown.mps is not None:
        restarts = f", {shown.mps.restarts} restarts" if shown.mps.restarts else ""
        yield f"MPS: {shown.mps.state.value}, {counted(len(shown.mps.clients), 'client')}{restarts}"


def _context(gpu: GpuStatus) -> str:
    if gpu.context_bytes:
        return f"a context {gpu.context_bytes / 2**20:.0f} MiB"
    return f"a context {CONTEXT_DEFAULT >> 20} MiB ({gpu.context_problem})"


def _title(assignment: ContainerSlices) -> str:
    """What people call a container: by its pod, where it is a pod's."""
    pod = assignment.pod
    return f"{pod.namespace}/{pod.name} {pod.container}" if pod.name else assignment.name


def show_containers(shown: AgentStatus, console: Console) -> None:
    """Print the containers with their slices."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("container", "state", "processes", "GPU", "memory MiB", "used", "compute"):
        # In a narrow terminal, names go on in the next line.
        table.add_column(column, no_wrap=column in {"processes", "compute"}, overflow="fold")
    index = {gpu.uuid: str(gpu.index) for gpu in shown.gpus}
    for one in shown.containers:
        for row, share in enumerate(one.assignment.shares):
            used = f"{(one.held_bytes[row] + one.overhead_bytes[row]) / 2**20:.0f}"
            if one.lent_bytes and one.lent_bytes[row]:
                used += f" (lent {one.lent_bytes[row] / 2**20:.0f})"
            if one.swapped_bytes and one.swapped_bytes[row]:
                used += f" + {one.swapped_bytes[row] / 2**20:.0f} of the host"
            kind = "soft" if share.soft else "hard"
            table.add_row(
                _title(one.assignment) if not row else "",
                one.state if not row else "",
                str(one.processes) if not row else "",
                index.get(share.uuid, share.uuid),
                str(share.memory_mib or "-"),
                used,
                f"{share.compute_percent} % {kind}" if share.compute_percent or share.soft else "-",
            )
    console.print(table if shown.containers else "no containers")
