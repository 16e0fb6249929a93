"""Samples of a pod that lie in a time, of what an agent has of it."""

from collections.abc import Iterable

from alnair.model.usage_feed import PodSeries


def mean(series: PodSeries, metric: str, begin: float, end: float) -> float:
    """Of the samples whose second lies in a time."""
    values = within(series, metric, begin, end)
    return sum(values) / max(1, len(values))


def within(series: PodSeries, metric: str, begin: float, end: float) -> list[float]:
    return list(by_time(series, metric, begin, end).values())


def by_time(series: PodSeries, metric: str, begin: float, end: float) -> dict[float, float]:
    columns: Iterable[float | None] = series.metrics.get(metric, [])
    return {
        at: value
        for at, value in zip(series.times, columns, strict=False)
        if value is not None and begin + 1 <= at <= end
    }
