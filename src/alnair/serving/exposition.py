"""Metrics that are read off the present state, as families of `prometheus_client`, and as text.

What is counted lies in plain numbers of our own (a count costs no lock); families are made of them
when somebody asks, and the library writes them down in the format that was asked for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Final

from aiohttp import web
from prometheus_client.exposition import choose_encoder, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from alnair.scheduler.metric_counters import Histogram

Labels = Mapping[str, str]

#: The figures of this process, as every exporter names them; on Linux only.
_PROCESS: Final = ProcessCollector(registry=None)


def counter(name: str, text: str, samples: Iterable[tuple[Labels, float]]) -> Metric:
    """Return a family of counters; `text` says what it is, for people."""
    family = Metric(name.removesuffix("_total"), text, "counter")
    for labels, value in samples:
        family.add_sample(name, dict(labels), value)
    return family


def gauge(name: str, text: str, samples: Iterable[tuple[Labels, float]]) -> Metric:
    """Return a family of gauges."""
    family = Metric(name, text, "gauge")
    for labels, value in samples:
        family.add_sample(name, dict(labels), value)
    return family


def histogram(name: str, text: str, samples: Iterable[tuple[Labels, Histogram]]) -> Metric:
    """Return a family of histograms."""
    family = Metric(name, text, "histogram")
    for labels, values in samples:
        total = 0
        for bound, count in zip([*values.bounds, float("inf")], values.counts, strict=True):
            total += count
            family.add_sample(f"{name}_bucket", {**labels, "le": _bound(bound)}, total)
        family.add_sample(f"{name}_sum", dict(labels), values.sum)
        family.add_sample(f"{name}_count", dict(labels), total)
    return family


def of_this_process() -> Iterable[Metric]:
    """Return what there is of the process itself: processor time, memory, files, its start."""
    return _PROCESS.collect()


def exposition(families: Iterable[Metric], accept: str = "") -> tuple[bytes, str]:
    """Return the families as text, and its content type.

    Args:
        families: No name twice.
        accept: The header of that name: OpenMetrics for those who ask for it, else the text format.
    """
    encode, content_type = choose_encoder(accept)
    if content_type.startswith("application/openmetrics-text"):
        return encode(_Families(map(_canonical, families))), content_type
    return encode(_Families(families)), content_type


def text_of(families: Iterable[Metric]) -> str:
    """Return the families in the text format of Prometheus, version 0.0.4."""
    return generate_latest(_Families(families)).decode()


def endpoint(
    families: Callable[[], Iterable[Metric]],
) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Return the handler of /metrics."""

    async def metrics(request: web.Request) -> web.Response:
        # What they say is of one moment; writing it down takes long, and holds up nobody.
        taken, accept = list(families()), request.headers.get("Accept", "")
        body, content_type = await asyncio.to_thread(exposition, taken, accept)
        return web.Response(body=body, headers={"Content-Type": content_type})

    return metrics


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        return iter(self._families)


def _bound(value: float) -> str:
    """Return a bucket's bound as Go's library writes it, and so kube-scheduler: `1`, not `1.0`."""
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


def _go(number: str) -> object:
    return floatToGoString(number)  # type: ignore[no-untyped-call]


def _canonical(family: Metric) -> Metric:
    """Return the family with its bounds as OpenMetrics wants them: `1.0`."""
    if family.type == "histogram":
        family.samples = [
            sample._replace(labels={**sample.labels, "le": str(_go(sample.labels["le"]))})
            if "le" in sample.labels
            else sample
            for sample in family.samples
        ]
    return family
