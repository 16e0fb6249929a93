"""The fake GPU from a test: make one, say what it shall do, ask it what is true.

The functions of native/fakegpu/fakegpu.h, called by ctypes. A process is attached to one machine at
a time, and so is a test: close one `Fake` before the next.
"""

import ctypes
import tempfile
import uuid
from functools import cache
from pathlib import Path
from typing import Self

from native import build

_C = ctypes.c_char_p
_U64 = ctypes.c_uint64
_INT = ctypes.c_int
#: Name: (result, arguments), as fakegpu.h declares them.
_FUNCTIONS: dict[str, tuple[type | None, tuple[type, ...]]] = {
    "create": (_INT, (_C, _C, _INT, _C)),
    "attach": (_INT, (_C,)),
    "detach": (None, ()),
    "now_ns": (_U64, ()),
    "sleep_until_ns": (None, (_U64,)),
    "join": (None, ()),
    "leave": (None, ()),
    "uuid": (_INT, (_INT, _C)),
    "total": (_U64, (_INT,)),
    "used": (_U64, (_C, _INT)),
    "managed_host": (_U64, (_C,)),
    "peak": (_U64, (_C, _INT)),
    "work_ns": (_U64, (_C, _INT)),
    "kernels": (_U64, (_C, _INT)),
    "watch": (None, (_C, _INT, _U64)),
    "over": (_U64, (_C, _INT)),
    "over_bytes": (_U64, (_C, _INT)),
    "reset": (None, (_C,)),
    "sweep": (_U64, ()),
    "calls": (_U64, (_C,)),
    "mig": (_INT, (_INT, _C)),
    "xid": (_INT, (_INT, ctypes.c_uint)),
    "fault": (_INT, (_C,)),
}


@cache
def _library() -> ctypes.CDLL:
    build.libraries()
    library = ctypes.CDLL(str(build.PLAIN / "libfakegpu.so"))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, f"fakegpu_{name}", None)
        if function is not None:
            function.restype, function.argtypes = result, arguments
    return library


class Fake:
    """A machine with fake GPUs, in a file on tmpfs.

    Args:
        profile: a model of native/fakegpu/profiles, or a path of such a file.
        gpus: how many.
        options: of `fakegpu_create`: clock="virtual" or "wall", mode="timeslice" or "mps", ...

    Raises:
        OSError: the library refused, as its line on stderr says.
    """

    def __init__(self, profile: str = "h200", gpus: int = 1, **options: object) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="alnair-fake-", dir="/dev/shm")
        self.gpus = gpus
        self.state = Path(self._folder.name) / "state"
        text = ",".join(f"{key}={value}" for key, value in options.items())
        library, state = _library(), str(self.state).encode()
        try:
            _checked(library.fakegpu_create(state, profile.encode(), gpus, text.encode()))
            _checked(library.fakegpu_attach(state))
        except OSError:
            self._folder.cleanup()
            raise

    def close(self) -> None:
        """Forgets the GPUs; clients must have ended."""
        _library().fakegpu_detach()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- clients -----------------------------------------------------------------------------

    def environment(
        self, tag: str = "a", *, cuda: int | None = None, faults: str = "", **more: str
    ) -> dict[str, str]:
        """What a client's environment needs to find these GPUs.

        Args:
            tag: the "container" it belongs to.
            cuda: the driver's version, as 12040; None: the newest.
            faults: "name=value,..." for this client only.
            more: further variables.
        """
        found = {
            "FAKEGPU_STATE": str(self.state),
            "FAKEGPU_TAG": tag,
            "LD_LIBRARY_PATH": str(build.PLAIN),
        }
        if cuda is not None:
            found["FAKEGPU_CUDA"] = str(cuda)
        if faults:
            found["FAKEGPU_FAULT"] = faults
        return {**found, **more}

    # ---- the machine -------------------------------------------------------------------------

    def uuid(self, gpu: int = 0) -> uuid.UUID:
        """The UUID that CUDA and NVML give this GPU."""
        buffer = ctypes.create_string_buffer(16)
        _checked(_library().fakegpu_uuid(gpu, buffer))
        return uuid.UUID(bytes=buffer.raw)

    def total(self, gpu: int = 0) -> int:
        """Bytes of the GPU."""
        return int(_library().fakegpu_total(gpu))

    def mig(self, layout: str | None, gpu: int = 0) -> None:
        """Puts a GPU into MIG mode, with instances such as "1g.10gb,1g.10gb+me"; None: out of it.

        Raises:
            OSError: it cannot be cut up so, or processes run in what would change.
        """
        _checked(_library().fakegpu_mig(gpu, None if layout is None else layout.encode()))

    @property
    def capabilities(self) -> Path:
        """What the driver tells of MIG instances below /proc/driver/nvidia/capabilities."""
        return self.state.parent / "capabilities"

    def xid(self, number: int, gpu: int = 0) -> None:
        """Sends an XID event to all who listen."""
        _checked(_library().fakegpu_xid(gpu, number))

    def fault(self, text: str) -> None:
        """Sets a fault for all processes, "name=value" (native/fakegpu/controls/faults.h)."""
        _checked(_library().fakegpu_fault(text.encode()))

    # ---- time --------------------------------------------------------------------------------

    def now_ns(self) -> int:
        """The GPUs' time: nanoseconds, virtual or monotonic."""
        return int(_library().fakegpu_now_ns())

    def sleep_until_ns(self, when: int) -> None:
        """Waits in the GPUs' time; with a virtual clock the calling thread must have joined."""
        _library().fakegpu_sleep_until_ns(when)

    def join(self) -> None:
        """From now on a virtual clock waits for the calling thread, too."""
        _library().fakegpu_join()

    def leave(self) -> None:
        """A virtual clock no longer waits for the calling thread."""
        _library().fakegpu_leave()

    # ---- the truth, per tag and GPU ----------------------------------------------------------

    def used(self, tag: str = "a", gpu: int = 0) -> int:
        """Bytes now: contexts, modules, blocks."""
        return int(_library().fakegpu_used(tag.encode(), gpu))

    def managed_host(self, tag: str = "a") -> int:
        """Bytes of managed memory that lies in the host's."""
        return int(_library().fakegpu_managed_host(tag.encode()))

    def peak(self, tag: str = "a", gpu: int = 0) -> int:
        """The most bytes at any instant."""
        return int(_library().fakegpu_peak(tag.encode(), gpu))

    def work_ns(self, tag: str = "a", gpu: int = 0) -> int:
        """GPU time that really ran for it."""
        return int(_library().fakegpu_work_ns(tag.encode(), gpu))

    def kernels(self, tag: str = "a", gpu: int = 0) -> int:
        """Kernels completed."""
        return int(_library().fakegpu_kernels(tag.encode(), gpu))

    def watch(self, limit: int, tag: str = "a", gpu: int = 0) -> None:
        """Counts from now on the instants at which the tag holds more than `limit` bytes."""
        _library().fakegpu_watch(tag.encode(), gpu, limit)

    def over(self, tag: str = "a", gpu: int = 0) -> tuple[int, int]:
        """(instants over the watched limit, bytes over in the worst of them)."""
        library, name = _library(), tag.encode()
        return int(library.fakegpu_over(name, gpu)), int(library.fakegpu_over_bytes(name, gpu))

    def reset(self, tag: str = "a") -> None:
        """Peak, work and instants over the limit count from now on."""
        _library().fakegpu_reset(tag.encode())

    def sweep(self) -> int:
        """Releases what dead processes held, as the kernel module does; bytes released."""
        return int(_library().fakegpu_sweep())

    def calls(self, name: str = "") -> int:
        """How often clients called a driver function; "": any."""
        return int(_library().fakegpu_calls(name.encode()))


def _checked(result: int) -> None:
    if result < 0:
        raise OSError(-result, "the fake GPU refused, see its line on stderr")
