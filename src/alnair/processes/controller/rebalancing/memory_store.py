"""Where rebalancing keeps what it is about to do: a ConfigMap, written before anything is done.

Each write names the version that it is based on, so of two processes that both think they lead one
is refused, and does nothing.
"""

import logging
from typing import Any, Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.resources import CONFIGMAPS, Manifest
from alnair.model import names
from alnair.model.rebalancing import RebalanceMemory

NAME: Final = "alnair-rebalancing"
_KEY: Final = "memory.json"

_log = logging.getLogger(__name__)


class MemoryStore:
    """The memory as this process knows it.

    Args:
        client: An open client.

    Attributes:
        memory: What was read or written last.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._version = ""
        self.memory = RebalanceMemory()

    async def read(self) -> None:
        """Read what there is.

        Raises:
            KubeError: It cannot be read.
        """
        try:
            found = await self._client.get(CONFIGMAPS, NAME, names.NAMESPACE)
        except NotFound:
            self._version, self.memory = "", RebalanceMemory()
            return
        self._version = found["metadata"]["resourceVersion"]
        self.memory = _decoded(found)

    async def write(self, memory: RebalanceMemory) -> None:
        """Write it.

        Raises:
            Conflict: Somebody else has written; read again.
            AlreadyExists: The same.
            KubeError: It cannot be written.
        """
        data = {_KEY: msgspec.json.format(msgspec.json.encode(memory), indent=1).decode()}
        meta: dict[str, Any] = {"name": NAME, "namespace": names.NAMESPACE}
        if self._version:
            patch = {"metadata": {"resourceVersion": self._version}, "data": data}
            made = await self._client.merge_patch(CONFIGMAPS, NAME, patch, names.NAMESPACE)
        else:
            made = await self._client.create(CONFIGMAPS, {"metadata": meta, "data": data})
        self._version, self.memory = made["metadata"]["resourceVersion"], memory


def _decoded(found: Manifest) -> RebalanceMemory:
    try:
        memory = msgspec.json.decode((found.get("data") or {}).get(_KEY, ""), type=RebalanceMemory)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        _log.warning("ConfigMap %s cannot be read, and begins anew: %s", NAME, error)
        return RebalanceMemory()
    return memory
