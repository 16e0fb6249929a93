"""The page of a report: one HTML file that needs no network and no scripts."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final

import msgspec

from alnair.history.metrics import TAU, Metrics
from alnair.history.report import overview
from alnair.history.report.overview import duration, number

#: Rows of a table at most; the CSV files have all.
_MOST: Final = 50
_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .15rem .8rem .15rem 0; text-align: right; vertical-align: top; }
td:first-child, th:first-child { text-align: left; }
th { font-weight: 600; } tr { border-bottom: 1px solid #8884; }
tr.part th { text-align: left; padding-top: .9rem; }
.wide { overflow-x: auto; } .note { opacity: .75; font-size: .9rem; }
svg { width: 100%; height: auto; color: inherit; }
figure { margin: 1rem 0; }
"""
_END: Final = """
<p class="note">Every figure is defined, with its source, in the page "Metrics of scheduling" of
Alnair's reference. The CSV files beside this page have every job, pod and span of time;
<code>summary.json</code> has every figure in full.</p>
"""
_DISTRIBUTIONS: Final = {
    "wait": "Wait of jobs",
    "completion": "Completion time of jobs",
    "bounded_slowdown": f"Bounded slow-down of jobs (tau {TAU:.0f} s)",
    "slowdown": "Slow-down of jobs",
    "pod_wait": "Wait of pods",
}


class Plot(msgspec.Struct, frozen=True):
    """A plot.

    Attributes:
        files: `svg` and `png`.
        inline: SVG for a page, in the page's colour of text.
    """

    name: str
    title: str
    files: dict[str, bytes]
    inline: str


def page(runs: Mapping[str, Metrics], plots: Sequence[Plot]) -> str:
    """Return the page of some runs."""
    title = "Scheduling report"
    parts = [
        "<!DOCTYPE html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>",
        *_sources(runs),
        *_overview(runs),
        *_plots(plots),
        *_distributions(runs),
        *_users(runs),
        *_pairs(runs),
        *_refusals(runs),
        _END,
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _sources(runs: Mapping[str, Metrics]) -> Iterable[str]:
    for run, metrics in runs.items():
        source = f": {escape(metrics.source)}" if metrics.source else ""
        yield f"<p><strong>{escape(run)}</strong>{source}</p>"


def _row(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _table(header: Iterable[str], rows: Iterable[str]) -> Iterable[str]:
    yield f'<div class="wide"><table><thead>{_row("th", header)}</thead><tbody>'
    yield from rows
    yield "</tbody></table></div>"


def _overview(runs: Mapping[str, Metrics]) -> Iterable[str]:
    first, *others = runs
    header = ("", *runs, *(f"{other} / {first}" for other in others))
    lines = []
    for row in overview.rows(runs):
        if row.heading:
            span = len(header)
            lines.append(f'<tr class="part"><th colspan="{span}">{escape(row.heading)}</th></tr>')
        lines.append(_row("td", (row.label, *row.values, *row.ratios)))
    yield "<h2>Overview</h2>"
    yield from _table(header, lines)


def _plots(plots: Sequence[Plot]) -> Iterable[str]:
    yield "<h2>Plots</h2>"
    if not plots:
        yield (
            "<p>There are none, as matplotlib is not installed: "
            "<code>pip install 'alnair[report]'</code> and write the report again.</p>"
        )
    for plot in plots:
        yield f"<figure>{plot.inline}</figure>"


def _distributions(runs: Mapping[str, Metrics]) -> Iterable[str]:
    yield "<h2>By size of the job</h2>"
    yield (
        '<p class="note">Figures are of what was over at the end; what was still open is counted '
        "beside it, and the last column takes it in with the time so far. Sizes are GPUs of a job; "
        "<em>shared</em> is less than one.</p>"
    )
    for what, title in _DISTRIBUTIONS.items():
        rows = overview.by_size(runs, what)
        yield f"<h3>{title}</h3>"
        yield from _table(
            ("size", "run", *overview.COLUMNS),
            (_row("td", (size, run, *cells)) for size, run, cells in rows),
        )


def _users(runs: Mapping[str, Metrics]) -> Iterable[str]:
    rows = [
        (run, name, user)
        for run, metrics in runs.items()
        for name, user in metrics.fairness.users.items()
    ]
    rows.sort(key=lambda row: -row[2].gpu_hours)
    yield "<h2>Users</h2>"
    yield from _table(
        ("user", "run", "jobs", "GPU hours", "wanted", "share", "wait, mean", "rho", "unfinished"),
        (
            _row(
                "td",
                (
                    *(name or "-", run, number(user.jobs), number(user.gpu_hours)),
                    *(number(user.wanted_gpu_hours), number(user.share), duration(user.wait_mean)),
                    *(number(user.rho), number(user.unfinished)),
                ),
            )
            for run, name, user in rows[:_MOST]
        ),
    )
    yield from _rest(len(rows), "users.csv")


def _pairs(runs: Mapping[str, Metrics]) -> Iterable[str]:
    rows = [(run, pair) for run, metrics in runs.items() for pair in metrics.sharing.pairs]
    if not rows:
        return
    rows.sort(key=lambda row: -row[1].seconds)
    yield "<h2>Pairs on one GPU</h2>"
    yield from _table(
        ("kinds", "run", "together", "speed of the first", "of the second", "throughput"),
        (
            _row(
                "td",
                (
                    *(f"{pair.first or '-'} + {pair.second or '-'}", run, duration(pair.seconds)),
                    *(number(pair.first_rate), number(pair.second_rate), number(pair.throughput)),
                ),
            )
            for run, pair in rows[:_MOST]
        ),
    )
    yield from _rest(len(rows), "pairs.csv")


def _refusals(runs: Mapping[str, Metrics]) -> Iterable[str]:
    rows = [(run, *item) for run, metrics in runs.items() for item in metrics.refusals.items()]
    if not rows:
        return
    yield "<h2>Why pods never had a node</h2>"
    yield from _table(
        ("reason", "run", "pods"),
        (_row("td", (reason, run, number(count))) for run, reason, count in rows[:_MOST]),
    )
    yield from _rest(len(rows), "pods.csv")


def _rest(count: int, file: str) -> Iterable[str]:
    if count > _MOST:
        yield f'<p class="note">{count - _MOST:,} more are in <code>{file}</code>.</p>'
