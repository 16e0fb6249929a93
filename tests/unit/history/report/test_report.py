"""Reports: all files or none, the same bytes each time, and names that could do harm are text."""

import csv
import io
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from alnair.history import report
from alnair.history.history import History, PairRate
from alnair.history.metrics import compute
from alnair.history.metrics.fragmentation import CAUSES
from alnair.history.report import overview, tables
from alnair.history.report.overview import duration, number
from kit.histories import history, job, node, stay

FILES = {
    *("index.html", "summary.json", "summary.csv", "jobs.csv", "pods.csv", "users.csv"),
    *("pairs.csv", "series.csv"),
}
PLOTS = ("gpu", "fragmentation", "stranded", "queue", "wait", "fairness")
#: Ill-meant, or just unlucky.
EVIL = '<script>alert("x")</script> $\\frac{'


def some(end: float = 100.0, name: str = "j") -> History:
    found = history(
        end,
        [node("a", 2)],
        job(name, 0, [stay("a", 10, 20)], user=EVIL, finished=20, duration=10.0, util=50.0),
        job("k", 5, [stay("a", 20, 40, "preempted", lost=7), stay("a", 60)], kind=EVIL),
        job("l", 5, [], refused=EVIL),
    )
    found.pairs.append(
        PairRate(first=name, second="k", seconds=3, first_rate=0.5, second_rate=0.75)
    )
    found.source = EVIL
    return found


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without plots, which take most of the time."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in ("plots", "drawing"):
        monkeypatch.delitem(sys.modules, f"alnair.history.report.{name}", raising=False)


class _Page(HTMLParser):
    """Every tag is closed, and what is said in them."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        links = [v for k, v in attrs if k in ("src", "href", "xlink:href") and v]
        self.outside += [link for link in links if not link.startswith("#")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def rows(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode())))


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """The files of a report on two runs."""
    return report.render({"A": some(), EVIL: some(200.0)})


def test_a_report_has_all_its_files_and_the_same_bytes_each_time(files: dict[str, bytes]) -> None:
    assert files.keys() == FILES | {f"{name}.{kind}" for name in PLOTS for kind in ("svg", "png")}
    assert report.render({"A": some(), EVIL: some(200.0)}) == files
    assert all(files[f"{name}.png"].startswith(b"\x89PNG") for name in PLOTS)
    for name in PLOTS:
        svg = files[f"{name}.svg"]
        assert b"<dc:date>" not in svg
        assert b"mathdefault" not in svg  # numbers are written out
        assert b"#fffffe" in svg
    assert b"#fffffe" not in files["index.html"]  # a page has its own ground
    assert b"currentColor" in files["index.html"]


@pytest.mark.usefixtures("plain")
def test_without_matplotlib_all_else_is_there_and_the_page_says_so() -> None:
    files = report.render({"a run": some()})
    assert files.keys() == FILES
    assert "pip install 'alnair[report]'" in files["index.html"].decode()


@pytest.mark.usefixtures("plain")
def test_without_jinja2_the_page_says_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "alnair.history.report.page", raising=False)
    files = report.render({"a run": some()})
    assert files.keys() == FILES
    assert "pip install 'alnair[report]'" in files["index.html"].decode()
    assert EVIL not in files["index.html"].decode()


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("what", ["run", "user", "kind", "reason", "source"])
def test_names_with_markup_in_them_are_text_wherever_they_come_from(what: str) -> None:
    evil = f"<b>{what}</b>&amp;\"'"
    found = history(
        100.0,
        [node("a", 2)],
        job(
            "j",
            0,
            [stay("a", 10, 20)],
            user=evil if what == "user" else "u",
            kind=evil if what == "kind" else "k",
        ),
        job("k", 5, [], refused=evil if what == "reason" else "full"),
    )
    found.pairs.append(PairRate(first="j", second="k", seconds=3, first_rate=1, second_rate=1))
    found.source = evil if what == "source" else "s"
    page = report.render({evil if what == "run" else "r": found})["index.html"].decode()
    assert f"<b>{what}" not in page
    assert f"&lt;b&gt;{what}&lt;/b&gt;&amp;amp;&#34;&#39;" in page


def test_the_page_has_summary_and_plots_first_and_all_tables_folded_below(
    files: dict[str, bytes],
) -> None:
    text = files["index.html"].decode()
    assert text.index("<h2>Summary") < text.index("<figure>") < text.index("<details>")
    assert text.rindex("</figure>") < text.index("<details>")
    folded = re.findall(r"<details( open)?><summary>([^<]*)</summary>", text)
    assert folded == [
        *(("", title) for title in ("All figures", "By size of the job", "Users")),
        ("", "Pairs on one GPU"),
        (" open", "Why pods never had a node"),
    ]
    top = text[: text.index("<details>")]
    runs = {"A": compute(some()), EVIL: compute(some(200.0))}
    assert len(overview.summary(runs)) < len(overview.rows(runs)) / 3
    assert all(f"<td>{row.label}</td>" in top for row in overview.summary(runs))


def test_the_axes_of_all_plots_begin_and_end_below_each_other(files: dict[str, bytes]) -> None:
    spans = {}
    for name in PLOTS:
        svg = files[f"{name}.svg"].decode()
        width = re.search(r'viewBox="0 0 (\S+) ', svg)
        axes = re.search(r'id="patch_2">\s*<path d="M (\S+) \S+ \s*L (\S+) ', svg)
        assert width, name
        assert axes, name
        spans[name] = (width[1], axes[1], axes[2])
    assert len(set(spans.values())) == 1, spans


def test_plots_over_time_end_where_the_longest_run_ends(files: dict[str, bytes]) -> None:
    ticks = [
        re.findall(r">(\d+)</text>", re.split(r'id="matplotlib.axis_2"', svg.decode())[0])
        for name, svg in files.items()
        if name in ("gpu.svg", "fragmentation.svg", "queue.svg")
    ]
    assert ticks[0] == ticks[1] == ticks[2]
    assert ticks[0][0] == "0"
    assert ticks[0][-1] == "200"


def test_the_page_is_whole_needs_nothing_from_outside_and_runs_nothing(
    files: dict[str, bytes],
) -> None:
    text = files["index.html"].decode()
    page = _Page()
    page.feed(text)
    assert not page.open
    assert "script" not in page.tags
    assert not page.outside
    assert "&lt;script&gt;" in text
    assert not re.search(r"url\((?!#)", text)


@pytest.mark.usefixtures("plain")
def test_tables_have_every_job_pod_user_and_span() -> None:
    files = report.render({"A": some(), "B": some(name="other")})
    jobs = rows(files["jobs.csv"])
    assert [(row["run"], row["job"], row["fate"]) for row in jobs] == [
        (run, name, fate)
        for run, first in (("A", "j"), ("B", "other"))
        for name, fate in ((first, "finished"), ("k", "running"), ("l", "waiting"))
    ]
    assert (jobs[0]["wait"], jobs[0]["completion"], jobs[1]["completion"]) == ("10", "20", "")
    pods = rows(files["pods.csv"])
    assert [row["how"] for row in pods[:4]] == ["completed", "preempted", "", ""]
    assert pods[3]["refused"] == EVIL
    assert {row["user"] for row in rows(files["users.csv"])} == {"u", EVIL}
    assert len(rows(files["series.csv"])) == 800
    assert rows(files["pairs.csv"])[0]["throughput"] == "1.25"


@pytest.mark.usefixtures("plain")
def test_the_summary_has_every_figure_for_programs() -> None:
    files = report.render({"A": some(), "B": some(200.0)})
    summary = json.loads(files["summary.json"])
    assert summary["runs"]["A"]["jobs"]["finished"] == 1
    assert summary["runs"]["B"]["seconds"] == 200
    figures = {row["metric"]: row for row in rows(files["summary.csv"])}
    assert figures["wait.all.over.mean"]["A"] == "12.5"
    assert figures["disruption.wasted_gpu_hours.preempted"]["B"] == str(7 / 3600)


def test_runs_stand_side_by_side_with_their_ratios() -> None:
    found = overview.rows({"A": compute(some()), "B": compute(some(200.0))})
    by_label = {row.label: row for row in found}
    assert by_label["time covered"].values == ("100 s", "3.33 min")
    assert by_label["time covered"].ratios == ("2.000",)
    assert by_label["makespan"].values == ("≥ 100 s", "≥ 3.33 min")
    assert by_label["GPU hours wasted: failed"].ratios == ("-",)
    alone = overview.rows({"A": compute(some())})
    assert not any(row.ratios for row in alone)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (1e6, "11.6 d")],
)
def test_times_are_told_in_the_unit_that_suits_them(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (3.0, "3"), (0.12345, "0.123"), (12345.6, "12,346")]
)
def test_numbers_are_told_with_three_digits(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.usefixtures("plain")
def test_a_report_takes_the_place_of_an_earlier_one_and_of_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "report"
    report.write({"A": some()}, folder)
    (folder / "stale.csv").write_text("")
    report.write({"A": some(200.0)}, folder)
    assert json.loads((folder / "summary.json").read_text())["runs"]["A"]["seconds"] == 200
    assert not (folder / "stale.csv").exists()
    assert [path.name for path in folder.parent.iterdir()] == ["report"]
    mine = tmp_path / "mine"
    mine.mkdir()
    report.write({"A": some()}, mine)
    for path in mine.iterdir():
        path.unlink()
    (mine / "thesis.txt").write_text("years of work")
    with pytest.raises(report.NotReportError, match="something else than a report"):
        report.write({"A": some()}, mine)
    assert (mine / "thesis.txt").read_text() == "years of work"


@pytest.mark.usefixtures("plain")
def test_what_fails_half_way_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "report"
    report.write({"A": some()}, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    write, left = Path.write_bytes, [3]

    def full(path: Path, data: bytes) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        report.write({"A": some(200.0)}, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert list(tmp_path.iterdir()) == [folder]


def test_the_page_of_the_metrics_has_every_figure_cause_and_file() -> None:
    page = Path(__file__).resolve().parents[4] / "docs/reference/metrics-of-scheduling.md"
    text = page.read_text()
    names = {part for path, _ in tables.figures(compute(some())) for part in path.split(".")}
    names |= set(CAUSES) | {file for file in FILES if file != "index.html"} | set(PLOTS)
    names |= set(tables.USERS[-5:]) | {name.split("_")[0] for name in compute(some()).series.values}
    assert not [name for name in names if name not in text]


@pytest.mark.usefixtures("plain")
def test_nothing_at_all_has_a_report_too() -> None:
    assert report.render({"empty": history(0.0, [])}).keys() >= FILES
