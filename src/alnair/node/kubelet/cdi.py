"""What a container gets of the node, as a file of the Container Device Interface (CDI).

`Allocate` only names a device; the file that says what it means is written when the container
starts. Its annotations say whose it is: the files are the agent's memory of what it let start.
"""

import contextlib
import logging
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from alnair.model.api_types import AssignedGpu

KIND: Final = "ai.centaurus.io/gpu"
#: Where container runtimes look. Gone at the next boot, as what it names is.
FOLDER: Final = Path("/run/cdi")
_PREFIX: Final = "alnair-"
#: Random bytes in a name: a runtime may still know the file of a name that was used before.
_NONCE: Final = 8
#: The first version with annotations on devices.
_VERSION: Final = "0.6.0"

_log = logging.getLogger(__name__)


def fresh_device() -> str:
    """Return the full name of a device that there never was."""
    return f"{KIND}={secrets.token_hex(_NONCE)}"


class Mount(msgspec.Struct, frozen=True, rename="camel"):
    """A file or folder of the node in a container."""

    host_path: str
    container_path: str
    options: tuple[str, ...] = ("ro", "nosuid", "nodev", "bind")


class DeviceNode(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A device of the node in a container."""

    path: str
    host_path: str = ""


class Edits(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What changes in a container."""

    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()


class StartedContainer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A container that was let start.

    Attributes:
        pod_uid: Its pod.
        namespace: Of the pod.
        pod: Name of the pod.
        container: Its name.
        parts: What it has of GPUs.
        device: Name of its CDI device, without the kind.
        slices: Name of its slices at the vGPU server, or "".
        mig: UUIDs of its MIG devices. Then there are no parts: these are another device of CDI.
    """

    pod_uid: str
    namespace: str
    pod: str
    container: str
    parts: tuple[AssignedGpu, ...]
    device: str
    slices: str = ""
    mig: tuple[str, ...] = ()


class _Device(msgspec.Struct, rename="camel"):
    name: str
    annotations: dict[str, str]
    container_edits: Edits


class _Spec(msgspec.Struct, rename="camel"):
    cdi_version: str
    kind: str
    devices: list[_Device]


_NOTE: Final = "ai.centaurus.io/started"


class CdiSpecs:
    """Our files in a folder of CDI.

    Args:
        folder: Where they are.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder

    def load(self) -> list[StartedContainer]:
        """Return what an agent before this one let start.

        Raises:
            OSError: The folder cannot be used.
        """
        self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        found = []
        for path in sorted(self._folder.glob(f"{_PREFIX}*.json")):
            try:
                spec = msgspec.json.decode(path.read_bytes(), type=_Spec)
                note = spec.devices[0].annotations[_NOTE]
                found.append(msgspec.json.decode(note, type=StartedContainer))
            except (OSError, msgspec.MsgspecError, UnicodeDecodeError, LookupError) as error:
                # Written in one piece, so it is not ours, or of another version.
                _log.warning("%s is not read: %s", path, error)
        for path in self._folder.glob(f".{_PREFIX}*"):
            path.unlink(missing_ok=True)  # of an agent that was killed while it wrote
        return found

    def write(self, started: StartedContainer, edits: Edits) -> None:
        """Write the file of a container; the container runtime sees all of it or nothing.

        Raises:
            OSError: It cannot be written.
        """
        note = msgspec.json.encode(started).decode()
        device = _Device(started.device, {_NOTE: note}, edits)
        data = msgspec.json.encode(_Spec(_VERSION, KIND, [device]))
        path = self._path(started.device)
        with contextlib.suppress(FileNotFoundError):
            if path.read_bytes() == data:
                return
        # Names with a dot in front, and without .json at the end, are not read by runtimes.
        new = path.with_name(f".{path.stem}.new")
        new.write_bytes(data)
        new.rename(path)

    def remove(self, devices: Iterable[str]) -> None:
        """Remove the files of devices; containers that run keep what they have."""
        for device in devices:
            with contextlib.suppress(OSError):
                self._path(device).unlink()

    def _path(self, device: str) -> Path:
        return self._folder / f"{_PREFIX}{device}.json"
