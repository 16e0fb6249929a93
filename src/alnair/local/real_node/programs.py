"""The node's long-running programs: how each is called, and asked whether it is well."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from alnair.local.real_node import init_script
from alnair.local.real_node.settings import (
    AGENT_PORT,
    DNS_HEALTH_PORT,
    KUBELET_HEALTH_PORT,
    PROXY_HEALTH_PORT,
    SHIM,
    NodeSettings,
)
from alnair.model.names import REAL_NODE

#: PID 1 with its namespaces, and what carries connections to the API server: on the machine's side.
NODE, FORWARDER = "node", "api-forwarder"
CONTAINERD, AGENT = "containerd", "agent"
#: All components, in the order of starting. The agent comes before the kubelet, which on its start
#: refuses pods whose GPUs nobody serves yet.
NAMES = (NODE, FORWARDER, CONTAINERD, AGENT, "kubelet", "kube-proxy", "coredns")
NODE_COMPONENTS = (*NAMES, SHIM)
#: What a node runs and needs at hand.
PROGRAMS = (
    *("containerd", "containerd-shim-runc-v2", "ctr", "runc", "ptp", "host-local", "portmap"),
    *("loopback", "kubelet", "kube-proxy", "coredns"),
)


@dataclass(frozen=True)
class NodeProgram:
    """A program in the node.

    Attributes:
        command: Program and arguments.
        reads: The files that it reads at its start.
        health: The URL to ask; "" where there is none.
    """

    command: list[str]
    reads: tuple[Path, ...]
    health: str


def enter(pid: int) -> tuple[str, ...]:
    """The command that runs others in the node.

    Args:
        pid: The node's PID 1, as the machine has it.
    """
    return ("nsenter", f"--target={pid}", "--mount", "--pid", "--net", "--ipc", "--uts", "--")


def program(name: str, node: NodeSettings, programs: Mapping[str, Path]) -> NodeProgram:
    """One of containerd, agent, kubelet, kube-proxy, coredns."""
    etc = node.configuration
    kubeconfig = node.layout.kubeconfig
    if name == AGENT:
        health = f"http://{node.address}:{AGENT_PORT}/healthz"
        return NodeProgram(_agent(node), (kubeconfig("agent"),), health)
    path = str(programs[name])
    if name == CONTAINERD:
        file = etc / "containerd.toml"
        cni = etc / "cni" / "10-alnair.conflist"
        return NodeProgram([path, f"--config={file}"], (file, cni), "")
    if name == "kubelet":
        file = etc / "kubelet.yaml"
        arguments = [
            f"--config={file}",
            f"--kubeconfig={kubeconfig('kubelet')}",
            f"--hostname-override={node.name}",
            f"--node-ip={node.address}",
            f"--node-labels={REAL_NODE}=true",
        ]
        health = f"http://{node.address}:{KUBELET_HEALTH_PORT}/healthz"
        return NodeProgram([path, *arguments], (file, kubeconfig("kubelet")), health)
    if name == "kube-proxy":
        file = etc / "kube-proxy.yaml"
        arguments = [f"--config={file}", f"--hostname-override={node.name}"]
        health = f"http://{node.address}:{PROXY_HEALTH_PORT}/livez"
        return NodeProgram([path, *arguments], (file, kubeconfig("kube-proxy")), health)
    file = etc / "Corefile"
    health = f"http://{node.address}:{DNS_HEALTH_PORT}/health"
    return NodeProgram([path, "-conf", str(file)], (file, kubeconfig("coredns")), health)


def _agent(node: NodeSettings) -> list[str]:
    libraries = init_script.driver_libraries()
    return [
        *(sys.executable, "-m", "alnair", "agent"),
        f"--node={node.name}",
        f"--kubeconfig={node.layout.kubeconfig('agent')}",
        # Prometheus in a pod reaches it by the node's address.
        f"--metrics={node.address}:{AGENT_PORT}",
        "--kubelet=/var/lib/kubelet",
        f"--pod-logs={node.pod_logs}",
        f"--driver-devices={init_script.FAKE_GPU}/dev",
        f"--driver-capabilities={init_script.FAKE_GPU}/capabilities",
        f"--driver-also={libraries / 'libfakegpu.so'}",
        f"--driver-also={init_script.FAKE_GPU}",
        "--policy=evict",
    ]


def ctr(programs: Mapping[str, Path], *arguments: str) -> Sequence[str]:
    """A command of containerd's own client, on the images and containers of Kubernetes."""
    return (str(programs["ctr"]), "--namespace=k8s.io", *arguments)
