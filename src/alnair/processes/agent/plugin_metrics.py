"""The device plugin's figures at `/metrics`: what the kubelet asked, and how long answers took."""

from collections.abc import Iterator, Sequence

from prometheus_client.metrics_core import Metric

from alnair.node.kubelet.plugin_server import PluginServer
from alnair.serving.exposition import counter, gauge, histogram


def plugin_metrics(servers: Sequence[PluginServer]) -> Iterator[Metric]:
    """Return all families; none where nothing is served to a kubelet."""
    if not servers:
        return
    resources = [({"resource": server.plugin.resource}, server) for server in servers]
    yield histogram(
        "alnair_device_plugin_call_seconds",
        "Time that calls of the kubelet took, by method and result.",
        (
            ({**labels, "method": method, "result": result}, times)
            for labels, server in resources
            for (method, result), times in sorted(server.times.by.items())
        ),
    )
    yield gauge(
        "alnair_device_plugin_watched",
        "Whether the kubelet follows the devices of the resource.",
        ((labels, float(server.watched > 0)) for labels, server in resources),
    )
    yield counter(
        "alnair_device_plugin_registrations_total",
        "Registrations with the kubelet: one for each start of the kubelet or of the agent.",
        ((labels, server.registrations) for labels, server in resources),
    )
