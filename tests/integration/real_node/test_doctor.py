"""`alnair doctor` where all is real: the cluster with its scheduler and agent, and their node."""

import json
import sys

from alnair.doctor import run
from alnair.doctor.finding import Level
from alnair.kube.client import Client
from alnair.local.controlplane import LocalCluster
from kit.live.agent_in_node import run_in_node
from kit.live.scheduler_process import eventually


async def test_a_cluster_with_a_real_node_is_well(client: Client) -> None:
    said: dict[str, str] = {}
    bad: list[str] = []

    async def is_well() -> bool:
        bad.clear()
        async for one in run.of_cluster(client, lambda what, done, total: None):
            said[one.check] = one.finding.what
            if one.finding.level is not Level.OK:
                bad.append(one.finding.what)
        return not bad

    # Its agent tells of the GPUs some moments after the node is ready.
    await eventually(is_well, what=lambda: f"nothing is wrong: {bad}")
    assert said["agents"] == "an agent is at work on each of 1 node"
    assert said["gpus"] == "18 GPUs are described, and none is unhealthy", (
        "two of the node, and of two simulated"
    )


def test_its_node_is_well(cluster: LocalCluster) -> None:
    doctor = (sys.executable, "-m", "alnair", "doctor", "--node", "--json")
    found = json.loads(run_in_node(cluster, *doctor))
    assert {one["check"] for one in found["findings"]} == {
        *("driver", "control-groups", "container-devices", "kubelet", "agent-folder", "libraries"),
        "mps",
    }
    assert [one for one in found["findings"] if one["level"] == "error"] == []
    assert "driver 615.36.01 answers, with 2 GPUs" in [one["what"] for one in found["findings"]]
