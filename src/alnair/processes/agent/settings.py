"""What the agent's process can be told; imported before all that is slow to import."""

from pathlib import Path
from typing import Literal

import msgspec

from alnair.node.kubelet.driver_files import DriverPlaces
from alnair.serving.tls import CertificateFiles

Policy = Literal["none", "best-effort", "restricted", "single-numa-node"]
Scope = Literal["container", "pod"]
WholeGpusMode = Literal["auto", "always", "never"]


class Alignment(msgspec.Struct, frozen=True):
    """How the node's kubelet aligns: `topologyManagerPolicy` and `…Scope` of its configuration.

    Attributes:
        policy: What it insists on.
        scope: What it aligns: each container, or the pod as a whole.
    """

    policy: Policy = "none"
    scope: Scope = "container"

    @property
    def insists(self) -> bool:
        """Whether the kubelet rejects what it cannot align."""
        return self.policy in ("restricted", "single-numa-node")


class PluginSettings(msgspec.Struct, frozen=True):
    """How GPUs are served to the kubelet.

    Attributes:
        node: Name of the node.
        kubelet: The kubelet's folder.
        driver: Where the driver's files are.
        whole: Whether `nvidia.com/gpu` and MIG devices are served; "auto": where no other plugin
            does.
        alignment: How the kubelet aligns devices, cores and memory to NUMA nodes.
    """

    node: str
    kubelet: Path
    driver: DriverPlaces = DriverPlaces()
    whole: WholeGpusMode = "auto"
    alignment: Alignment = Alignment()


class Settings(msgspec.Struct, frozen=True):
    """See the options of the command."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 0
    secure: bool = False
    certificate: CertificateFiles | None = None
    policy: Literal["warn", "throttle", "evict"] = "warn"
    stray_policy: Literal["", "warn", "evict"] = ""
    node: str = ""
    kubeconfig: Path | None = None
    in_cluster: bool = False
    mps: bool = False
    mps_percent: int = 100
    mps_memory_mib: int = 0
    suspends: bool = False
    context_mib: int = 0
    probes: bool = True
    plugin: PluginSettings | None = None
    soft_factor: float = 1.0
    usage_folder: Path | None = None
    legacy_metrics: bool = False
    sample_every: float = 1.0
    pod_logs: Path = Path("/var/log/pods")
    no_logs_of: tuple[str, ...] = ()
    dcgm_exporter: str = ""
    idle_after: float = 600.0
    kubelet_page: str = ""
    kubelet_token: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
    stands_by: bool = False
