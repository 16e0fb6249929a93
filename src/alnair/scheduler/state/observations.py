"""What observing plugins have learned of nodes and pods, where their filters and scores find it."""

from collections import defaultdict
from typing import Any


class Observations:
    """Values by plugin name; each has a version, which changes whenever the value does.

    Who learns is not known here: see `alnair.scheduler.framework.observers`.
    """

    def __init__(self) -> None:
        self._by_plugin: dict[str, Any] = {}
        self._versions: defaultdict[str, int] = defaultdict(int)
        #: A number that changes whenever any plugin has learned something.
        self.changes = 0

    def of(self, plugin: str) -> Any:
        """Return what the plugin's observer has learned; None if none of this name observes."""
        return self._by_plugin.get(plugin)

    def put(self, plugin: str, learned: Any) -> None:
        """Note what the plugin has learned, also if it is the same object with other contents."""
        self._by_plugin[plugin] = learned
        self._versions[plugin] += 1
        self.changes += 1

    def version(self, plugin: str) -> int:
        """Return a number that changes whenever the plugin has learned something."""
        return self._versions[plugin]
