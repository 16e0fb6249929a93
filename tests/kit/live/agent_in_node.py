"""What the agent of a real node says of itself, asked in the node."""

import json
import subprocess
import sys
from typing import Any

from alnair.local.controlplane import LocalCluster
from alnair.local.real_node.programs import enter


def run_in_node(cluster: LocalCluster, *command: str) -> str:
    """Run a command in the namespaces of the node, and return what it wrote."""
    pid = cluster.pid("kubelet")
    assert pid is not None
    done = subprocess.run([*enter(pid), *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def agent_status(cluster: LocalCluster) -> Any:
    """What `alnair agent status` says."""
    command = (sys.executable, "-m", "alnair", "agent", "status", "--json")
    return json.loads(run_in_node(cluster, *command))
