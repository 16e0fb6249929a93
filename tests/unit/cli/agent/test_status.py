"""What people read of an agent's containers."""

import pytest
from typer.testing import CliRunner

from alnair.cli import main
from alnair.cli.agent import asking
from alnair.node.vgpu.containers.container import Status
from alnair.node.vgpu.containers.container_slices import (
    ContainerMatch,
    ContainerSlices,
    OwningPod,
    Share,
)
from alnair.processes.agent.admin_socket import AgentStatus, Answer

POD = OwningPod("default", "inference-of-a-model-with-a-long-name-786dcd47bd-9xn7f", "u", "main")
SLICES = ContainerSlices(
    "a", ContainerMatch(pod="u"), (Share("GPU-0", 4096), Share("GPU-1", 8192)), POD
)
CONTAINER = Status(SLICES, "/var/lib/a", "running", None, 2, (1 << 20, 0), (0, 0))
SHOWN = AgentStatus(1, "/var/lib", (), "", (CONTAINER,), 1.0)


@pytest.mark.parametrize("command", [("status",), ("container", "list")])
def test_a_pipe_gets_whole_names_in_plain_columns(
    monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(asking, "ask", lambda *_: Answer(status=SHOWN))
    done = CliRunner().invoke(main.build(["agent"]), ["agent", *command])
    heads, first, second = done.output.splitlines()[-3:]
    assert " ".join(heads.split()) == "container state processes GPU memory MiB used compute"
    assert first.split()[0] == f"default/{POD.name}"
    assert first.split()[1:] == ["main", "running", "2", "GPU-0", "4096", "1", "-"]
    assert second.split() == ["GPU-1", "8192", "0", "-"]
