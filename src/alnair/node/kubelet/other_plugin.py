"""Whether another device plugin serves a resource on this node, such as NVIDIA's `nvidia.com/gpu`.

When the stream of one plugin ends, the kubelet disconnects whichever plugin serves the resource by
then. So who came first stays, and this is asked before ours registers.
"""

import time
from pathlib import Path
from typing import Final

from alnair.node.kubelet import checkpoint
from alnair.node.kubelet.checkpoint import CLOCK_TICK_NS, CheckpointError

#: What NVIDIA's plugin, and those made from it, call their sockets.
_SOCKETS: Final = "nvidia*.sock"


class OtherPlugin:
    """Looks for it in the kubelet's folder of device plugins.

    Args:
        folder: This.
        resource: Such as `nvidia.com/gpu`.
    """

    def __init__(self, folder: Path, resource: str) -> None:
        self._folder = folder
        self._resource = resource
        # The checkpoint tells that a resource was served and not by whom, so ours is noted beside
        # it. A kubelet that starts removes sockets only.
        self._note = folder / f"alnair-{resource.replace('/', '-')}.served"
        self._looked_at = 0

    def may_have_come(self) -> bool:
        """Tell whether the folder was changed since the last call, at the cost of one stat.

        It may say so once more where the folder was changed just before the call.
        """
        changed = self._folder.stat().st_mtime_ns
        has_changed = changed != self._looked_at
        # Who comes after this look, within the same tick of the kernel's clock, leaves this time.
        is_settled = time.time_ns() - changed > CLOCK_TICK_NS
        self._looked_at = changed if is_settled else 0
        return has_changed

    def seen(self) -> str:
        """Say by what it is seen; "" if it is not.

        Raises:
            OSError: The folder cannot be used.
        """
        names = sorted(path.name for path in self._folder.glob(_SOCKETS))
        if names:
            self._note.unlink(missing_ok=True)
            return f"its socket {names[0]} is in {self._folder}"
        if self._note.exists():
            return ""
        try:
            is_known = self._resource in checkpoint.registered(self._folder)
        except CheckpointError:
            return ""
        return "the kubelet's checkpoint knows it, and not from this agent" if is_known else ""

    def note_ours(self) -> None:
        """Note that what the kubelet will know of the resource is ours.

        Raises:
            OSError: The folder cannot be used.
        """
        self._note.touch()
