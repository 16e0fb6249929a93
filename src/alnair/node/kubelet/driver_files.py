"""The files of the NVIDIA driver that a program in a container needs."""

import sysconfig
from pathlib import Path
from typing import Final

import msgspec

from alnair.node import driver_root

CUDA: Final = "libcuda.so.1"
NVML: Final = "libnvidia-ml.so.1"
#: Libraries of the driver that programs in containers load, by the names that they are loaded by.
#: What a driver does not have is left out.
_LIBRARIES: Final = (
    *(NVML, "libnvidia-ptxjitcompiler.so.1", "libnvidia-nvvm.so.4"),
    *("libnvidia-gpucomp.so", "libnvidia-allocator.so.1", "libcudadebugger.so.1"),
    *("libnvidia-opencl.so.1", "libnvcuvid.so.1", "libnvidia-encode.so.1"),
    *("libnvidia-cfg.so.1", "libnvidia-pkcs11-openssl3.so", "libnvidia-sandboxutils.so.1"),
)
#: Programs that people look for.
_PROGRAMS: Final = ("nvidia-smi", "nvidia-debugdump")
#: Devices that every GPU's programs need; what a driver does not have is left out.
_CONTROL: Final = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")


class DriverError(Exception):
    """The driver's files are not where they should be; says which, and what to do."""


class DriverPlaces(msgspec.Struct, frozen=True):
    """Where to look, and what else containers need; paths are those of the node.

    Attributes:
        libraries: Folder of the driver's libraries; None: the usual ones.
        devices: Folder of /dev/nvidia*, which are in /dev in the container.
        also: Further files, and folders that programs may write, at the same place in containers.
        capabilities: What the driver says of MIG instances.
        root: Where this process sees the node's root.
    """

    libraries: Path | None = None
    devices: Path = Path("/dev")
    also: tuple[Path, ...] = ()
    capabilities: Path = Path("/proc/driver/nvidia/capabilities")
    root: Path = Path("/")

    def has(self, path: Path) -> bool:
        """Tell whether the node has it."""
        return driver_root.exists(self.root, path)


class DriverFiles(msgspec.Struct, frozen=True):
    """What a node has; paths are those of the node.

    Attributes:
        cuda: The driver's `libcuda.so.1`.
        files: Other libraries and programs.
        control: Devices beside those of the GPUs.
        devices: Folder of all devices.
        also: Further files and folders.
        root: Where this process sees the node's root.
        capabilities: What the driver says of MIG instances.
    """

    cuda: Path
    files: tuple[Path, ...]
    control: tuple[str, ...]
    devices: Path
    also: tuple[Path, ...]
    root: Path
    capabilities: Path

    def device(self, minor: int) -> str:
        """Return the name of a GPU's device, in the folder of devices."""
        return f"nvidia{minor}"

    def mig_devices(self, minor: int, gi: int, ci: int) -> tuple[str, str]:
        """Return the names of the two devices that open a MIG instance, of its GPU and its own.

        Raises:
            OSError: The driver does not tell of the instance, or a device is missing.
        """
        place = self.capabilities / f"gpu{minor}" / "mig" / f"gi{gi}"
        return self._capability(place), self._capability(place / f"ci{ci}")

    def _capability(self, place: Path) -> str:
        text = driver_root.seen(self.root, place / "access").read_text()
        words = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
        name = f"nvidia-caps/nvidia-cap{words.get('DeviceFileMinor', '')}"
        if not self.has(name):
            raise OSError(f"{self.devices / name} is missing, which opens {place}")
        return name

    def has(self, name: str) -> bool:
        """Tell whether there is this device: a driver in user space has none."""
        return driver_root.exists(self.root, self.devices / name)

    def real(self, path: Path) -> str:
        """Return the file that a path leads to: what is mounted is the file, not the link to it."""
        return str(driver_root.real(self.root, path))

    def is_folder(self, path: Path) -> bool:
        """Tell whether this is a folder."""
        return driver_root.seen(self.root, Path(self.real(path))).is_dir()


def multiarch() -> str:
    """Return where Debian and its like have this machine's libraries, below /usr/lib; or ""."""
    return str(sysconfig.get_config_var("MULTIARCH") or "")


def library_folders() -> list[Path]:
    """Return where distributions have libraries of 64 bits, the likeliest first."""
    folders = [Path("/usr/lib", multiarch())] if multiarch() else []
    return [*folders, Path("/usr/lib64"), Path("/usr/lib")]


def find(places: DriverPlaces) -> DriverFiles:
    """Find the driver's files.

    Raises:
        DriverError: There is no `libcuda.so.1`, or something that was named is missing.
    """
    folders = [places.libraries] if places.libraries else library_folders()
    folder = next((one for one in folders if places.has(one / CUDA)), None)
    if folder is None:
        raise DriverError(
            f"{CUDA} is not in {', '.join(map(str, folders))}: install the NVIDIA driver, or say "
            "where it is (--driver-libraries)"
        )
    for path in places.also:
        if not places.has(path):
            raise DriverError(f"{path} is not there (--driver-also)")
    programs = [Path("/usr/bin", name) for name in _PROGRAMS]
    return DriverFiles(
        cuda=folder / CUDA,
        files=tuple(
            path
            for path in [*(folder / name for name in _LIBRARIES), *programs]
            if places.has(path)
        ),
        control=tuple(name for name in _CONTROL if places.has(places.devices / name)),
        devices=places.devices,
        also=places.also,
        root=places.root,
        capabilities=places.capabilities,
    )


def own_libraries(places: DriverPlaces) -> list[Path]:
    """Return the libraries that an agent in a container loads by their paths, in this order.

    None where the agent sees the node's root as its own: then the loader finds them.

    Raises:
        DriverError: See `find`.
    """
    if places.root == Path("/"):
        return []
    found = find(places)
    needed = [path for path in found.also if ".so" in path.name]
    nvml = [path for path in found.files if path.name == NVML]
    return [
        driver_root.seen(places.root, Path(found.real(path)))
        for path in (*needed, found.cuda, *nvml)
    ]
