"""The page of a report: one HTML file that needs no network and no scripts.

Here is what is on it; `page.html.jinja` says how it looks. First what a person looks at first, a
summary and the plots; then all tables, folded.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from typing import Final

import jinja2
import msgspec
from markupsafe import Markup

from alnair.history.metrics import TAU, Metrics
from alnair.history.report import overview
from alnair.history.report.overview import duration, number
from alnair.history.report.plot import Plot

#: Rows of a table at most; the CSV files have all.
_MOST: Final = 50
_DISTRIBUTIONS: Final = {
    "wait": "Wait of jobs",
    "completion": "Completion time of jobs",
    "bounded_slowdown": f"Bounded slow-down of jobs (tau {TAU:.0f} s)",
    "slowdown": "Slow-down of jobs",
    "pod_wait": "Wait of pods",
}
_USERS: Final = (
    *("user", "run", "jobs", "GPU hours", "wanted", "share", "wait, mean", "rho"),
    "unfinished",
)
_PAIRS: Final = ("kinds", "run", "together", "speed of the first", "of the second", "throughput")


class _Row(msgspec.Struct, frozen=True):
    """A row; `heading` opens a part of the table."""

    cells: tuple[str, ...]
    heading: str = ""


class _Table(msgspec.Struct, frozen=True):
    """A table; `more` rows are only in `file`."""

    header: tuple[str, ...]
    rows: tuple[_Row, ...]
    title: str = ""
    more: str = ""
    file: str = ""


class _Section(msgspec.Struct, frozen=True):
    """Tables that are folded together."""

    title: str
    tables: tuple[_Table, ...]
    note: str = ""
    is_open: bool = False


def page(runs: Mapping[str, Metrics], plots: Sequence[Plot]) -> str:
    """Return the page of some runs."""
    text = resources.files("alnair.history.report").joinpath("page.html.jinja").read_text("utf-8")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.from_string(text).render(
        runs=[{"name": name, "source": metrics.source} for name, metrics in runs.items()],
        summary=_figures(runs, overview.summary(runs)),
        plots=[Markup(plot.inline) for plot in plots],
        sections=list(_sections(runs)),
    )


def _sections(runs: Mapping[str, Metrics]) -> Iterator[_Section]:
    yield _Section("All figures", (_figures(runs, overview.rows(runs)),))
    yield _Section(
        "By size of the job",
        tuple(_distribution(runs, what, title) for what, title in _DISTRIBUTIONS.items()),
        "Figures are of what was over at the end; what was still open is counted beside it, and the"
        " last column takes it in with the time so far. Sizes are GPUs of a job; shared is less"
        " than one.",
    )
    yield _Section("Users", (_limited(_USERS, _users(runs), "users.csv"),))
    if pairs := list(_pairs(runs)):
        yield _Section("Pairs on one GPU", (_limited(_PAIRS, pairs, "pairs.csv"),))
    if refusals := list(_refusals(runs)):
        table = _limited(("reason", "run", "pods"), refusals, "pods.csv")
        yield _Section("Why pods never had a node", (table,), is_open=True)


def _figures(runs: Mapping[str, Metrics], rows: Iterable[overview.Row]) -> _Table:
    first, *others = runs
    header = ("", *runs, *(f"{other} / {first}" for other in others))
    shown = (_Row((row.label, *row.values, *row.ratios), row.heading) for row in rows)
    return _Table(header, tuple(shown))


def _distribution(runs: Mapping[str, Metrics], what: str, title: str) -> _Table:
    rows = (_Row((size, run, *cells)) for size, run, cells in overview.by_size(runs, what))
    return _Table(("size", "run", *overview.COLUMNS), tuple(rows), title)


def _limited(header: tuple[str, ...], rows: Iterable[tuple[str, ...]], file: str) -> _Table:
    """Return a table of the first rows; the file has all."""
    found = [_Row(cells) for cells in rows]
    more = f"{len(found) - _MOST:,}" if len(found) > _MOST else ""
    return _Table(header, tuple(found[:_MOST]), more=more, file=file)


def _users(runs: Mapping[str, Metrics]) -> Iterator[tuple[str, ...]]:
    rows = [
        (run, name, user)
        for run, metrics in runs.items()
        for name, user in metrics.fairness.users.items()
    ]
    rows.sort(key=lambda row: -row[2].gpu_hours)
    for run, name, user in rows:
        yield (
            *(name or "-", run, number(user.jobs), number(user.gpu_hours)),
            *(number(user.wanted_gpu_hours), number(user.share), duration(user.wait_mean)),
            *(number(user.rho), number(user.unfinished)),
        )


def _pairs(runs: Mapping[str, Metrics]) -> Iterator[tuple[str, ...]]:
    rows = [(run, pair) for run, metrics in runs.items() for pair in metrics.sharing.pairs]
    rows.sort(key=lambda row: -row[1].seconds)
    for run, pair in rows:
        yield (
            *(f"{pair.first or '-'} + {pair.second or '-'}", run, duration(pair.seconds)),
            *(number(pair.first_rate), number(pair.second_rate), number(pair.throughput)),
        )


def _refusals(runs: Mapping[str, Metrics]) -> Iterator[tuple[str, ...]]:
    for run, metrics in runs.items():
        for reason, count in metrics.refusals.items():
            yield reason, run, number(count)
