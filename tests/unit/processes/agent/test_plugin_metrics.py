"""The figures of the device plugin."""

from collections.abc import Sequence
from pathlib import Path

from alnair.node.kubelet.plugin_server import PluginDevice, PluginServer
from alnair.processes.agent.plugin_metrics import plugin_metrics
from alnair.serving.exposition import text_of


class Plugin:
    resource = "alnair/vgpu"

    def devices(self) -> Sequence[PluginDevice]:
        return []

    def prefer(self, available: Sequence[str], must: Sequence[str], size: int) -> Sequence[str]:
        return [*must, *available][:size]

    def allocate(self, ids: Sequence[str]) -> str:
        return ids[0]

    async def start(self, ids: frozenset[str]) -> None:
        del ids


def test_calls_are_told_by_resource_method_and_result() -> None:
    server = PluginServer(Path("/nowhere"), Plugin())
    server.registrations, server.watched = 3, 1
    server.times.took("Allocate", "ok", 0.004)
    server.times.took("Allocate", "ok", 0.04)
    server.times.took("PreStartContainer", "refused", 10.0)
    lines = text_of(plugin_metrics([server])).splitlines()
    call = "alnair_device_plugin_call_seconds"
    allocated = 'method="Allocate",resource="alnair/vgpu",result="ok"'
    refused = 'method="PreStartContainer",resource="alnair/vgpu",result="refused"'
    assert {
        f'{call}_bucket{{le="0.002",{allocated}}} 0.0',
        f'{call}_bucket{{le="0.005",{allocated}}} 1.0',
        f'{call}_bucket{{le="0.05",{allocated}}} 2.0',
        f"{call}_count{{{refused}}} 1.0",
        f"{call}_sum{{{refused}}} 10.0",
        'alnair_device_plugin_watched{resource="alnair/vgpu"} 1.0',
        'alnair_device_plugin_registrations_total{resource="alnair/vgpu"} 3.0',
    } <= set(lines)


def test_an_agent_that_serves_no_kubelet_has_none() -> None:
    assert list(plugin_metrics(())) == []
