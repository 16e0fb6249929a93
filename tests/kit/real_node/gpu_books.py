"""The driver's own books of a real node, asked from outside of it."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from alnair.local.real_node import fake_gpu
from kit.real_node import book_keeper
from kit.real_node.node_shell import inside


class GpuBooks:
    """Asks the program inside the node. Use as a context manager.

    Args:
        node: Folder of the node's cluster.
    """

    def __init__(self, cluster: Path) -> None:
        library = str(fake_gpu.BUILT / "libfakegpu.so")
        self._process = subprocess.Popen(
            [*inside(cluster), sys.executable, book_keeper.__file__, library, fake_gpu.STATE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._turn = threading.Lock()

    def ask(self, name: str, *arguments: object) -> Any:
        """Return the answer of a method of `Books`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._turn:
            print(
                json.dumps({"ask": name, "with": arguments}), file=self._process.stdin, flush=True
            )
            return json.loads(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate(timeout=10)
