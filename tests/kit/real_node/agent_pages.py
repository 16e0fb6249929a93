"""An agent in a real node, asked for its pages as something in the node would ask."""

import asyncio
import sys
from typing import Any

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from alnair.local.controlplane import LocalCluster
from alnair.model.usage_feed import PodSeries, UsagePage
from kit.live.agent_in_node import run_in_node


class AgentPages:
    """Asked in the node."""

    def __init__(self, cluster: LocalCluster, address: str) -> None:
        self._cluster = cluster
        self._address = address

    async def page(self, path: str) -> str:
        ask = (
            "import sys, urllib.request as u\n"
            "sys.stdout.write(u.urlopen(sys.argv[1], timeout=60).read().decode())"
        )
        url = f"http://{self._address}{path}"
        return await asyncio.to_thread(run_in_node, self._cluster, sys.executable, "-c", ask, url)

    async def series(self, found: Any) -> PodSeries:
        """A pod's last minutes."""
        text = await self.page(f"/v1/series?pod={found['metadata']['uid']}")
        return msgspec.json.decode(text, type=PodSeries)

    async def metrics(self) -> dict[str, dict[frozenset[tuple[str, str]], float]]:
        """Name → labels → value."""
        found: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
        for family in text_string_to_metric_families(await self.page("/metrics")):
            for sample in family.samples:
                found.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
        return found

    async def value(self, name: str, **labels: str) -> float | None:
        """The sum of a metric's samples with these labels; None without any."""
        samples = (await self.metrics()).get(name, {})
        found = [value for key, value in samples.items() if labels.items() <= dict(key).items()]
        return sum(found) if found else None

    async def usage(self) -> UsagePage:
        return msgspec.json.decode(await self.page("/v1/usage"), type=UsagePage)
