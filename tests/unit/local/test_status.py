"""What is said of a component that is asked while the machine is busy."""

from pathlib import Path

import psutil

from alnair.local.components import health
from alnair.local.components.processes import Running
from alnair.local.components.supervision import Supervised
from alnair.local.controlplane import LocalCluster
from alnair.local.status import _of_node


async def said_after(tmp_path: Path, *answers: str | None) -> tuple[bool, str]:
    """Whether a component of the node is healthy that answers so, one after the other."""
    left = list(answers)

    async def probe() -> str | None:
        return left.pop(0)

    part = Supervised("kubelet", [], "", {}, probe)
    cluster = LocalCluster("one", root=tmp_path)
    found = await _of_node(cluster, part, {"kubelet": Running("kubelet", "", psutil.Process())})
    assert left == []
    return found.healthy, found.problem


async def test_a_component_of_the_node_that_stood_still_is_asked_again(tmp_path: Path) -> None:
    silent = f"{health.NO_ANSWER} 2 s"
    assert await said_after(tmp_path, silent, silent, None) == (True, "")
    assert await said_after(tmp_path, silent, "500: it is not well") == (
        False,
        "500: it is not well",
    )
