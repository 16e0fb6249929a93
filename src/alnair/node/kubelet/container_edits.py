"""What a container gets: the driver's files and its GPUs, and for a slice what holds it to it.

docs/concepts/interposer.md has the mounts of a slice, and why each of them.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from alnair.node.kubelet.cdi import DeviceNode, Edits, Mount
from alnair.node.kubelet.driver_files import CUDA, DriverFiles, library_folders
from alnair.node.mps import MpsOptions, client_variables
from alnair.node.vgpu.installed_library import MOUNTED, Installed
from alnair.node.vgpu.pages import abi

#: Where the interposer finds the driver that it stands in for.
_DRIVER: Final = "/run/alnair/driver/libcuda.so.1"
#: Where images bring a `libcuda.so.1` of their own, which their programs would load first.
_OF_IMAGES: Final = (Path("/usr/local/cuda/compat"), Path("/usr/local/nvidia/lib64"))
_WRITABLE: Final = ("rw", "nosuid", "nodev", "bind")
#: With what is mounted inside it.
_WHOLE_FOLDER: Final = ("rw", "nosuid", "nodev", "rbind")
#: NVIDIA's own runtime, if it is the node's default, adds no GPUs of its own.
_NO_OTHERS: Final = "NVIDIA_VISIBLE_DEVICES=void"


def whole(driver: DriverFiles, minors: Iterable[int]) -> Edits:
    """What a container with whole GPUs gets.

    Args:
        driver: The node's.
        minors: Minor numbers of the GPUs.
    """
    mounts = (Mount(driver.real(driver.cuda), str(driver.cuda)), *_common(driver))
    return Edits((_NO_OTHERS,), _nodes(driver, minors), mounts)


def mig(driver: DriverFiles, devices: Iterable[tuple[int, int, int]]) -> Edits:
    """What a container with MIG devices gets: their GPUs, and what opens these instances of them.

    Args:
        driver: The node's.
        devices: The minor number of each one's GPU, its GPU instance, its compute instance.

    Raises:
        OSError: One of them is not there.
    """
    wanted = sorted(devices)
    opening = dict.fromkeys(name for one in wanted for name in driver.mig_devices(*one))
    edits = whole(driver, {minor for minor, _, _ in wanted})
    nodes = tuple(DeviceNode(f"/dev/{name}", str(driver.devices / name)) for name in opening)
    return Edits(edits.env, edits.device_nodes + nodes, edits.mounts)


def sliced(driver: DriverFiles, minors: Iterable[int], library: Installed, folder: Path) -> Edits:
    """What a container with a slice gets.

    Args:
        driver: The node's.
        minors: Minor numbers of the GPUs.
        library: The interposer.
        folder: The container's, as the vGPU server made it.
    """
    places = {driver.cuda.parent, *library_folders(), *_OF_IMAGES}
    mounts = (
        Mount(str(folder), abi.FOLDER),
        # Over the folder, which is read-only: the one file that the container's processes write.
        Mount(f"{folder}/counters", f"{abi.FOLDER}/counters", _WRITABLE),
        Mount(driver.real(driver.cuda), _DRIVER),
        *(Mount(str(library.proxy), str(place / CUDA)) for place in sorted(places)),
        Mount(str(library.preload), str(MOUNTED)),
        Mount(str(library.preload_list), "/etc/ld.so.preload"),
        *_common(driver),
    )
    return Edits((_NO_OTHERS,), _nodes(driver, minors), mounts)


def with_mps(edits: Edits, options: MpsOptions, percent: int, memory_mib: int) -> Edits:
    """Return what a container with a slice gets that shall be a client of the MPS daemon.

    Args:
        edits: Of the slice.
        options: Of the daemon.
        percent: SMs of each of its processes; 0: as many as the daemon allows.
        memory_mib: Memory of each of its processes.
    """
    # The container sees one GPU, its number 0.
    wanted = client_variables(options, percent=percent or None, memory_mib={0: memory_mib})
    variables = tuple(f"{name}={text}" for name, text in wanted.items())
    pipe = Mount(str(options.pipe), str(options.pipe), _WRITABLE)
    return Edits(edits.env + variables, edits.device_nodes, (*edits.mounts, pipe))


def _common(driver: DriverFiles) -> list[Mount]:
    mounts = [Mount(driver.real(path), str(path)) for path in driver.files]
    for path in driver.also:
        place = driver.real(path), str(path)
        mounts.append(Mount(*place, _WHOLE_FOLDER) if driver.is_folder(path) else Mount(*place))
    return mounts


def _nodes(driver: DriverFiles, minors: Iterable[int]) -> tuple[DeviceNode, ...]:
    wanted = [*driver.control, *(driver.device(minor) for minor in sorted(minors))]
    return tuple(
        DeviceNode(f"/dev/{name}", str(driver.devices / name))
        for name in wanted
        if driver.has(name)
    )
