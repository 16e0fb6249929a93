"""Families of metrics as text: the format of Prometheus, version 0.0.4, and OpenMetrics 1.0.

The library's own writer makes the labels of each sample anew, and for OpenMetrics it looks at each
letter of each name: a page of 110 pods takes several times as long. Ours writes labels that many
samples share once. It knows what we have: counters, gauges and histograms with plain names.

Source: the exposition formats of prometheus.io/docs, and the specification of OpenMetrics.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.utils import floatToGoString

_TYPES: Final = frozenset({"counter", "gauge", "histogram"})


def written(families: Iterable[Metric], *, open_metrics: bool = False) -> bytes:
    """Return families as text.

    Args:
        families: No name twice.
        open_metrics: In that format, else in the plain one.

    Raises:
        ValueError: A family is neither counter, gauge nor histogram, or a sample of it has a time.
    """
    taken = list(families)  # as long as they are there, no two labels have the same id
    texts: dict[int, str] = {}
    lines: list[str] = []
    for family in taken:
        if family.type not in _TYPES:
            raise ValueError(f"{family.name}: families of type {family.type} are not written here")
        name, text = family.name, family.documentation.replace("\\", r"\\").replace("\n", r"\n")
        if open_metrics:
            text = text.replace('"', r"\"")
        elif family.type == "counter":
            name += "_total"
        lines.append(f"# HELP {name} {text}\n# TYPE {name} {family.type}\n")
        if open_metrics and family.unit:
            lines.append(f"# UNIT {name} {family.unit}\n")
        for one in family.samples:
            sample, labels, value, at = one[:4]
            if at is not None:
                raise ValueError(f"{sample}: samples with a time of their own are not written here")
            label = texts.get(id(labels))
            if label is None:
                label = texts[id(labels)] = _labels(labels)
            lines.append(f"{sample}{label} {number(value)}\n")
    if open_metrics:
        lines.append("# EOF\n")
    return "".join(lines).encode()


def number(value: float) -> str:
    """Return a number as Go's library writes it, and so kube-scheduler."""
    return str(floatToGoString(value))  # type: ignore[no-untyped-call]


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    pairs = ",".join([f'{name}="{_value(labels[name])}"' for name in sorted(labels)])
    return f"{{{pairs}}}"


def _value(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
