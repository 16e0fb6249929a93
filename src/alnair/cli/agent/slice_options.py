"""Options that the commands of the agent share: which GPUs, how much of them, which agent."""

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_FOLDER = Path("/run/alnair/agent")

GpuOption = Annotated[
    list[str], typer.Option("--gpu", metavar="GPU", help="UUID or index; several: repeat it.")
]
MemoryOption = Annotated[
    int, typer.Option("--memory", min=0, metavar="MIB", help="Of each GPU; 0: no limit.")
]
SwapOption = Annotated[
    int,
    typer.Option(
        "--swap", min=0, metavar="MIB", help="Of the host, for what goes beyond --memory; 0: none."
    ),
]
BorrowOption = Annotated[
    bool, typer.Option("--borrow", help="May exceed --memory by what nobody was granted.")
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
ShownNameArgument = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The container's; of a pod's: NAMESPACE/POD/CONTAINER."),
]
