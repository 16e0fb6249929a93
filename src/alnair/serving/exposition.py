"""The text format of Prometheus, version 0.0.4: metric families as text.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/. A client library would bring
registries and locks for what is here a few lines; `promtool check metrics` judges the result.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from alnair.scheduler.counters import Histogram

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]


def counter(name: str, text: str, samples: Iterable[tuple[Labels, float]]) -> str:
    """Return a family of counters; `text` says what it is, for people."""
    return _family(name, "counter", text, (_line(name, *sample) for sample in samples))


def gauge(name: str, text: str, samples: Iterable[tuple[Labels, float]]) -> str:
    """Return a family of gauges."""
    return _family(name, "gauge", text, (_line(name, *sample) for sample in samples))


def histogram(name: str, text: str, samples: Iterable[tuple[Labels, Histogram]]) -> str:
    """Return a family of histograms."""
    return _family(
        name, "histogram", text, (line for sample in samples for line in _buckets(name, *sample))
    )


def _family(
    name: str, kind: Literal["counter", "gauge", "histogram"], text: str, lines: Iterable[str]
) -> str:
    escaped = text.replace("\\", r"\\").replace("\n", r"\n")
    return "\n".join((f"# HELP {name} {escaped}", f"# TYPE {name} {kind}", *lines, ""))


def _buckets(name: str, labels: Labels, values: Histogram) -> Iterable[str]:
    total = 0
    for bound, count in zip([*values.bounds, float("inf")], values.counts, strict=True):
        total += count
        yield _line(f"{name}_bucket", {**labels, "le": _number(bound)}, total)
    yield _line(f"{name}_sum", labels, values.sum)
    yield _line(f"{name}_count", labels, total)


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
