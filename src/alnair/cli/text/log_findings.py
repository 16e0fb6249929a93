"""What a log says of a training, for people to read."""

from collections.abc import Iterator

import typer

from alnair.model.durations import span
from alnair.profiler.logs.log_reader import LogFindings


def show(found: LogFindings) -> None:
    """Print what is known, a line for each figure."""
    for name, value in lines(found):
        typer.echo(f"{name:<10} {value}")


def lines(found: LogFindings) -> Iterator[tuple[str, str]]:
    """Return names and values, what is not known left out."""
    yield "framework", found.framework or "unknown"
    if found.epoch is not None:
        yield "epoch", _of(found.epoch, found.epochs)
    if found.step is not None:
        yield "step", _of(found.step, found.steps)
    if found.loss is not None:
        yield "loss", f"{found.loss:g}" + (", then no number" if found.diverged else "")
    if found.accuracy is not None:
        yield "accuracy", f"{found.accuracy:g}"
    if found.rate is not None:
        fast = found.rate >= 1
        yield "rate", f"{found.rate:.3g} steps/s" if fast else f"{1 / found.rate:.3g} s/step"
    if found.samples_per_s is not None:
        yield "samples", f"{found.samples_per_s:.4g} per second"
    if found.progress is not None:
        yield "progress", f"{found.progress:.1%}"
    yield "left", _left(found)
    if found.restarts:
        yield "restarts", str(found.restarts)


def _left(found: LogFindings) -> str:
    if found.eta_s is not None:
        low, high = span(found.eta_low_s or 0.0), span(found.eta_high_s or 0.0)
        return f"{span(found.eta_s)} (between {low} and {high})"
    if found.progress is not None:
        return "unknown: the log says no times and no rates; kubectl logs --timestamps adds times"
    return "unknown: the log does not say how much there is to do; say --steps or --epochs"


def _of(done: float, total: float | None) -> str:
    return f"{done:g}" if total is None else f"{done:g} of {total:g}"
