"""A device plugin that answers as the test says."""

from collections.abc import Sequence

from alnair.node.kubelet.plugin_server import PluginDevice, StartRefusedError


class Plugin:
    """Two ids, any of which may be given.

    Attributes:
        now: Its devices.
        starts: Ids of the containers that were let start.
        refusal: Why none may start.
    """

    def __init__(self, resource: str = "test/thing") -> None:
        self.resource = resource
        self.now = [PluginDevice("a"), PluginDevice("b")]
        self.starts: list[frozenset[str]] = []
        self.refusal = ""

    def devices(self) -> Sequence[PluginDevice]:
        return list(self.now)

    def prefer(self, available: Sequence[str], must: Sequence[str], size: int) -> Sequence[str]:
        return [*must, *sorted(available, reverse=True)][:size]

    def allocate(self, ids: Sequence[str]) -> str:
        return f"test/kind={'-'.join(sorted(ids))}"

    async def start(self, ids: frozenset[str]) -> None:
        if self.refusal:
            raise StartRefusedError(self.refusal)
        self.starts.append(ids)
