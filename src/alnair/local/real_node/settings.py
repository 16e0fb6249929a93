"""What a real node is: its name, addresses and places, all from a few choices."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from alnair.local.layout import Layout

NAME = "real-0"
#: A cluster's node has a network of its own, so that several clusters can each have one.
SLOTS = 64
DNS_ADDRESS = "10.96.0.10"
DOMAIN = "cluster.local"
#: On the node's address.
KUBELET_HEALTH_PORT = 10248
PROXY_HEALTH_PORT = 10256
DNS_HEALTH_PORT = 8080
AGENT_PORT = 9464
#: The component of a container's parent, which outlives containerd: one for each pod.
SHIM = "shim"
#: Folders that the node replaces by its own: the cluster must not lie in them.
HIDDEN = (Path("/run"), Path("/var/lib"), Path("/var/log"))


@dataclass(frozen=True)
class NodeSettings:
    """What everything of a real node is made from.

    Attributes:
        layout: The cluster's files.
        slot: Which of the networks, from 0.
        gpus: How many fake GPUs it has.
        gpu_model: Their profile, one of native/fakegpu/profiles.
        api_port: The API server's port, on the machine's and on the node's loopback.
        installed: Whether Alnair's agent is a pod here, and no process.
        name: Of the Node.
    """

    layout: Layout
    slot: int
    gpus: int
    gpu_model: str
    api_port: int
    installed: bool = False
    name: str = NAME

    @property
    def folder(self) -> Path:
        """All files of the node."""
        return self.layout.folder / "node"

    @property
    def static_pods(self) -> Path:
        """Where the kubelet looks for pods from files."""
        return self.folder / "static-pods"

    @property
    def pod_logs(self) -> Path:
        """Where the kubelet keeps what containers write."""
        return self.folder / "pod-logs"

    @property
    def kubelet(self) -> Path:
        """What the node sees as /var/lib/kubelet, a path that the kubelet insists on."""
        return self.folder / "kubelet"

    @property
    def containerd(self) -> Path:
        """Images and snapshots."""
        return self.folder / "containerd"

    @property
    def configuration(self) -> Path:
        """The configuration files of its programs."""
        return self.folder / "etc"

    @property
    def driver(self) -> Path:
        """The fake GPU's libraries, which the node sees where a driver's would be."""
        return self.folder / "driver"

    @property
    def host_address(self) -> str:
        """The machine's end of the link to the node."""
        return f"10.213.{self.slot}.1"

    @property
    def address(self) -> str:
        """The node's address, its InternalIP."""
        return f"10.213.{self.slot}.2"

    @property
    def link(self) -> str:
        """The machine's network device towards the node."""
        return link_name(self.layout)

    @property
    def pod_cidr(self) -> str:
        """The addresses of its pods."""
        return f"10.213.{128 + self.slot}.0/24"

    @property
    def cgroup(self) -> str:
        """The control group of all pods, below the root of each hierarchy."""
        return cgroup_name(self.layout)


# Both are known without any choice, so that they are found where the choices are forgotten.


def cgroup_name(layout: Layout) -> str:
    """The control group of a cluster's pods."""
    return f"alnair-{_short(layout)}"


def link_name(layout: Layout) -> str:
    """The machine's network device towards a cluster's node; at most 15 characters, less one."""
    return f"aln{_short(layout)}"


def _short(layout: Layout) -> str:
    return hashlib.sha256(bytes(layout.folder)).hexdigest()[:10]
