"""Clusters that several integration tests use, one after the other."""

import asyncio
import signal
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from alnair.local.components import processes
from alnair.local.controlplane import LocalCluster
from kit.live.audited_requests import audit_flags


async def discard(cluster: LocalCluster) -> None:
    """Take a cluster down without waiting for goodbyes."""
    found = processes.find(cluster.layout.folder)
    await processes.stop([running.process for running in found], signal.SIGKILL, 0)
    await cluster.down()


class SharedClusters:
    """Clusters that tests share, until all tests of their lane are done."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._up: dict[str, LocalCluster] = {}

    def get(
        self,
        name: str,
        prepare: Callable[[LocalCluster], Awaitable[object]] | None = None,
        **options: Any,
    ) -> LocalCluster:
        """Return the cluster of this name, made and prepared at the first time or after its end."""
        if name not in self._up or self._up[name].remembered() is None:
            cluster = self.make(f"{name}-{uuid.uuid4().hex[:8]}", **options)

            async def start() -> None:
                try:
                    await cluster.up()
                    if prepare is not None:
                        await prepare(cluster)
                except BaseException:
                    # The next test would start another one beside it.
                    await discard(cluster)
                    raise

            asyncio.run(start())
            self._up[name] = cluster
        return self._up[name]

    def make(self, name: str, **options: Any) -> LocalCluster:
        """Return a cluster, not started, whose API server notes what our components ask for."""
        flags = {key: tuple(given) for key, given in options.pop("extra_args", {}).items()}
        server = "kube-apiserver"
        flags[server] = (*flags.get(server, ()), *audit_flags(self.audits, name))
        return LocalCluster(name, root=self.root, extra_args=flags, **options)

    @property
    def audits(self) -> Path:
        """Where the API servers' audit logs are; they outlive the clusters."""
        return self.root / "audits"

    def discard(self) -> None:
        """Take down all that runs, however it was made."""
        self._up.clear()
        for state in self.root.glob("*/state.json"):
            asyncio.run(discard(LocalCluster(state.parent.name, root=self.root)))
