"""The kubelet's own note of which container was given which ids, and what our `Allocate` answered.

The pod-resources API says which pod holds an id, but leaves out init containers that end, and no
API says which CDI name a container got. Both are in the file that the kubelet writes at each
admission, before any of the pod's containers starts, and reads again after its own restart. The
format is the kubelet's own (pkg/kubelet/cm/devicemanager/checkpoint), the same since Kubernetes
1.20; it is read here and never written.
"""

import functools
import time
from pathlib import Path
from typing import Final

import msgspec
from google.protobuf.message import DecodeError

from alnair.node.kubelet.api import deviceplugin_pb2
from alnair.sharing.matching.node_state import Allocation

#: A change of a file or folder has the time of the kernel's last tick, which is at most 10 ms old:
#: two changes may have one time.
CLOCK_TICK_NS: Final = 20_000_000
#: In the folder of device plugins.
NAME: Final = "kubelet_internal_checkpoint"


class CheckpointError(Exception):
    """The file cannot be used; says which, and why."""


class _Entry(msgspec.Struct):
    pod: str = msgspec.field(name="PodUID")
    container: str = msgspec.field(name="ContainerName")
    resource: str = msgspec.field(name="ResourceName")
    #: By NUMA node.
    ids: dict[str, list[str] | None] | None = msgspec.field(name="DeviceIDs", default=None)
    #: What `Allocate` answered, in protobuf.
    answer: bytes | None = msgspec.field(name="AllocResp", default=None)


class _Data(msgspec.Struct):
    entries: list[_Entry] | None = msgspec.field(name="PodDeviceEntries", default=None)
    #: Healthy ids by resource.
    registered: dict[str, msgspec.Raw] | None = msgspec.field(
        name="RegisteredDevices", default=None
    )


class _Checkpoint(msgspec.Struct):
    data: _Data = msgspec.field(name="Data")


_decoder = msgspec.json.Decoder(_Checkpoint)


def read(folder: Path) -> list[Allocation]:
    """Return what each container holds, of all plugins; nothing before the first admission.

    Args:
        folder: Of device plugins.

    Raises:
        CheckpointError: The file cannot be read, or has another form than is known.
    """
    try:
        # The kubelet replaces the file, so another inode or time says that there is news.
        seen = (folder / NAME).stat()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CheckpointError(f"{folder / NAME} cannot be read: {error}") from error
    # Within a tick of the kernel's clock another one may have the same time, and the inode of one
    # that is gone: such a file is read again.
    read_ = _read if time.time_ns() - seen.st_mtime_ns > CLOCK_TICK_NS else _read.__wrapped__
    return list(read_(folder, seen.st_ino, seen.st_mtime_ns, seen.st_size))


@functools.lru_cache(maxsize=2)
def _read(folder: Path, *_seen: int) -> tuple[Allocation, ...]:
    """Read the file as it is now: asked every second, it changes only when pods come and go."""
    data = _data(folder)
    try:
        return tuple(_allocation(entry) for entry in data.entries or ())
    except DecodeError as error:
        raise CheckpointError(f"{folder / NAME} cannot be read: {error}") from error


def registered(folder: Path) -> frozenset[str]:
    """Return the resources that plugins serve, or served some minutes ago.

    Args:
        folder: Of device plugins.

    Raises:
        CheckpointError: The file cannot be read, or has another form than is known.
    """
    return frozenset(_data(folder).registered or ())


def _data(folder: Path) -> _Data:
    path = folder / NAME
    try:
        return _decoder.decode(path.read_bytes()).data
    except FileNotFoundError:
        return _Data()
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error


def _allocation(entry: _Entry) -> Allocation:
    answer = deviceplugin_pb2.ContainerAllocateResponse.FromString(entry.answer or b"")
    return Allocation(
        pod_uid=entry.pod,
        container=entry.container,
        resource=entry.resource,
        ids=frozenset(one for listed in (entry.ids or {}).values() for one in listed or ()),
        device=next((one.name for one in answer.cdi_devices), ""),
    )
