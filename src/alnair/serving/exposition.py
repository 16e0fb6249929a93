"""Metrics that are read off the present state, as families of `prometheus_client`, and as text.

What is counted lies in plain numbers of our own (a count costs no lock); families are made of them
when somebody asks, and written down in the format that was asked for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from aiohttp import web
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.samples import Sample

from alnair.scheduler.metric_counters import Histogram
from alnair.serving.written_families import number, written

Labels = Mapping[str, str]

#: The figures of this process, as every exporter names them; on Linux only.
_PROCESS: Final = ProcessCollector(registry=None)


def counter(name: str, text: str, samples: Iterable[tuple[Labels, float]]) -> Metric:
    """Return a family of counters; `text` says what it is, for people."""
    return _family(name.removesuffix("_total"), text, "counter", name, samples)


def gauge(name: str, text: str, samples: Iterable[tuple[Labels, float]]) -> Metric:
    """Return a family of gauges."""
    return _family(name, text, "gauge", name, samples)


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


def _family(
    name: str, text: str, kind: str, sample: str, samples: Iterable[tuple[Labels, float]]
) -> Metric:
    family = Metric(name, text, kind)
    # Labels that several samples have in common stay one object, which is written once.
    family.samples = [
        Sample(sample, labels if isinstance(labels, dict) else dict(labels), value)
        for labels, value in samples
    ]
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
    _, content_type = choose_encoder(accept)
    if content_type.startswith("application/openmetrics-text"):
        return written(map(_canonical, families), open_metrics=True), content_type
    return written(families), content_type


def text_of(families: Iterable[Metric]) -> str:
    """Return the families in the text format of Prometheus, version 0.0.4."""
    return written(families).decode()


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


def _bound(value: float) -> str:
    """Return a bucket's bound as Go's library writes it, and so kube-scheduler: `1`, not `1.0`."""
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


def _canonical(family: Metric) -> Metric:
    """Return the family with its bounds as OpenMetrics wants them: `1.0`."""
    if family.type == "histogram":
        family.samples = [
            sample._replace(labels={**sample.labels, "le": number(float(sample.labels["le"]))})
            if "le" in sample.labels
            else sample
            for sample in family.samples
        ]
    return family
