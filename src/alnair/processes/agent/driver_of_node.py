"""NVML of the node, opened by an agent that has its own root file system."""

import os

from alnair.node import driver_root
from alnair.node.kubelet import driver_files
from alnair.node.kubelet.driver_files import DriverError, DriverPlaces
from alnair.node.nvml import Nvml, NvmlError
from alnair.node.vgpu import context_probe


def open_nvml(places: DriverPlaces) -> Nvml:
    """Open NVML; probes that are started later find the same libraries.

    Raises:
        NvmlError: There is no driver.
    """
    try:
        libraries = driver_files.own_libraries(places)
        driver_root.load(libraries)
    except (DriverError, OSError) as error:
        raise NvmlError(f"the NVIDIA driver cannot be loaded: {error}") from error
    os.environ[context_probe.LIBRARIES] = ":".join(map(str, libraries))
    return Nvml.open()
