"""What checks of a node need to know: where its files are."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from alnair.node import driver_root
from alnair.node.kubelet.driver_files import DriverPlaces
from alnair.node.nvml import Nvml
from alnair.processes.agent.driver_of_node import open_nvml

#: Where the chart's agent sees the root of its node.
_HOST: Final = Path("/host")


class NodeLook:
    """A look at a node.

    Args:
        root: Where this process sees the node's root.
        kubelet: The kubelet's folder.
        folder: The agent's.
        opener: Opens NVML; raises NvmlError.
        proc: The kernel's view of processes.
    """

    def __init__(
        self,
        root: Path,
        kubelet: Path,
        folder: Path,
        opener: Callable[[], Nvml],
        proc: Path = Path("/proc"),
    ) -> None:
        self.root = root
        self.kubelet = kubelet
        self.folder = folder
        self.opener = opener
        self.proc = proc

    def seen(self, path: str | Path) -> Path:
        """Return where this process finds a path of the node, links followed."""
        try:
            return driver_root.seen(self.root, driver_root.real(self.root, Path(path)))
        except OSError:
            return driver_root.seen(self.root, Path(path))

    def read(self, path: str | Path) -> str | None:
        """Return a file of the node; None: there is none that can be read."""
        try:
            return self.seen(path).read_text(errors="replace")
        except OSError:
            return None


def look_at(kubelet: Path, folder: Path, libraries: Path | None = None) -> NodeLook:
    """Return a look at the node on which this runs, in the agent's container or outside.

    Args:
        kubelet: The kubelet's folder.
        folder: The agent's.
        libraries: Of the driver, as the node names them; None: where they are usual.
    """
    places = DriverPlaces(libraries, root=usual_root())
    return NodeLook(places.root, kubelet, folder, lambda: open_nvml(places))


def usual_root() -> Path:
    """Return where this process sees the node's root: below /host in a pod of the chart."""
    in_pod = "KUBERNETES_SERVICE_HOST" in os.environ
    return _HOST if in_pod and (_HOST / "etc").is_dir() else Path("/")
