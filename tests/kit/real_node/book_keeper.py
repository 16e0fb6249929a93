"""The driver's own books, read inside the node: a program that answers lines of JSON.

It runs in the node's namespaces, since the fake GPU takes a process that it does not see for dead.
`gpu_books.py` starts it.
"""

import ctypes
import json
import re
import sys
import uuid
from pathlib import Path
from typing import Any

from alnair.node.nvml import Nvml

_U64 = ctypes.c_uint64
_POD = re.compile(r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})")


class Books:
    """The fake driver's state, and NVML.

    Args:
        library: libfakegpu.so.
        state: The state's file.
    """

    def __init__(self, library: str, state: str) -> None:
        self._fake = ctypes.CDLL(library)
        for name in ("used", "peak", "over", "work_ns", "kernels"):
            function = getattr(self._fake, f"fakegpu_{name}")
            function.restype, function.argtypes = _U64, (ctypes.c_char_p, ctypes.c_int)
        self._fake.fakegpu_total.restype = _U64
        self._fake.fakegpu_watch.argtypes = (ctypes.c_char_p, ctypes.c_int, _U64)
        if self._fake.fakegpu_attach(state.encode()):
            raise OSError(f"{state} cannot be read")
        self._nvml = Nvml.open()
        self._uuids = [self._uuid(index) for index in range(len(self._nvml.gpus))]

    def _uuid(self, index: int) -> str:
        buffer = ctypes.create_string_buffer(16)
        self._fake.fakegpu_uuid(index, buffer)
        return f"GPU-{uuid.UUID(bytes=buffer.raw)}"

    def gpus(self) -> dict[str, int]:
        """Bytes by UUID."""
        return {name: self._fake.fakegpu_total(i) for i, name in enumerate(self._uuids)}

    def watch(self, tag: str, limit: int) -> None:
        """Begin a new account of a tag, and count the instants above the limit on any GPU."""
        self._fake.fakegpu_reset(tag.encode())
        for index in range(len(self._uuids)):
            self._fake.fakegpu_watch(tag.encode(), index, limit)

    def tags(self, tags: list[str]) -> dict[str, dict[str, dict[str, int]]]:
        """What the driver says: tag → GPU → figure."""
        found: dict[str, dict[str, dict[str, int]]] = {}
        for tag in tags:
            for index, name in enumerate(self._uuids):
                row = {
                    figure: getattr(self._fake, f"fakegpu_{figure}")(tag.encode(), index)
                    for figure in ("used", "peak", "over", "kernels")
                }
                if any(row.values()):
                    found.setdefault(tag, {})[name] = row
        return found

    def alive(self) -> list[str]:
        """The uids of all pods that have processes."""
        pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
        return sorted({_pod(pid) for pid in pids} - {""})

    def pods(self) -> dict[str, dict[str, int]]:
        """What NVML says of processes in pods: uid of the pod → GPU → bytes."""
        found: dict[str, dict[str, int]] = {}
        for name in self._uuids:
            for pid, used in self._nvml.read(name).load.memory.items():
                if uid := _pod(pid):
                    of = found.setdefault(uid, {})
                    of[name] = of.get(name, 0) + (used or 0)
        return found


def _pod(pid: int) -> str:
    """The uid of a process's pod; "" of one that is gone, or in none, as the agent's probe is."""
    try:
        with open(f"/proc/{pid}/cgroup") as file:  # noqa: PTH123 (read as it is)
            match = _POD.search(file.read())
    except OSError:
        return ""
    return match.group(1).replace("_", "-") if match else ""


def main() -> None:
    """Answer until the input ends: {"ask": name of a method, "with": its arguments}."""
    books = Books(*sys.argv[1:])
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        answer = getattr(books, asked["ask"])(*asked["with"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
