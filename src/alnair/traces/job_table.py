"""Tables of GPU jobs in the manner of Microsoft's Philly trace (Jeon et al., USENIX ATC'19).

One line per job: when it was submitted, how long it ran, how many GPUs it had, whose it was.
"""

import hashlib
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from alnair.traces.csv_table import Problem, Row, rows

SUBMITTED, DURATION, GPUS = "timestamp", "duration", "num_gpus"
REQUIRED = (SUBMITTED, DURATION, GPUS)
#: Further columns that are read; `gpu_time` is held against the others.
OPTIONAL = ("gpu_time", "cluster", "user", "job_id")
#: Other names of the columns, as other tables of this kind have them.
ALIASES = {
    SUBMITTED: ("submit_time", "submitted", "submitted_time", "submission_time", "submit"),
    DURATION: ("run_time", "runtime", "duration_s", "duration_seconds"),
    GPUS: ("gpus", "gpu_num", "num_gpu", "gpu_count", "n_gpus"),
    "gpu_time": ("gpu_seconds",),
    "cluster": ("vc", "virtual_cluster", "vcid", "virtualcluster", "queue"),
    "user": ("user_id", "username"),
    "job_id": ("jobid", "id", "name", "job_name", "job"),
}
_MOST_GPUS = 100_000
#: Ten years: a longer run, or a time before 1970, is a mistake of unit.
_MOST_SECONDS = 10 * 366 * 86400.0
_MOST_TIME = 4_102_444_800.0  # the year 2100
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_DIGITS = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")
#: Seconds by which GPU time may differ from GPUs x duration, and as a part of it.
_SLACK, _SLACK_PART = 60.0, 0.01


class PhillyJob(NamedTuple):
    """A job as the table has it.

    Attributes:
        name: one that Kubernetes takes.
        submitted: seconds since the epoch.
        duration: seconds; 0 = it never ran.
        where: the virtual cluster that it was submitted to; may be empty.
    """

    name: str
    submitted: float
    duration: float
    gpus: int
    user: str
    where: str


def read_table(lines: Iterable[str], source: str, problems: list[Problem]) -> list[PhillyJob]:
    """Read a table.

    Args:
        lines: The text.
        source: Name of the file.
        problems: Filled with all that is wrong; the result is of use only if nothing was added.
    """
    seen: dict[str, int] = {}
    return [
        _line(row, seen)
        for row in rows(
            lines,
            source,
            required=REQUIRED,
            optional=OPTIONAL,
            aliases=ALIASES,
            others=True,
            problems=problems,
        )
    ]


def _line(row: Row, seen: dict[str, int]) -> PhillyJob:
    submitted = _time(row)
    duration = row.real(DURATION, most=_MOST_SECONDS)
    gpus = row.number(GPUS, most=_MOST_GPUS)
    if row.text("gpu_time"):
        given = row.real("gpu_time", most=_MOST_SECONDS * _MOST_GPUS)
        if abs(given - duration * gpus) > max(_SLACK, _SLACK_PART * given):
            row.wrong(
                "gpu_time",
                f"{given:g} is not {gpus} GPUs x {duration:g} s: mend the line, or drop the column",
            )
    user = row.text("cluster")
    called = row.text("job_id")
    name = object_name(called) if called else f"job-{row.line:06d}"
    if name in seen:
        row.wrong(
            "job_id", f"{called or name!r} is on line {seen[name]} already: names must differ"
        )
    seen.setdefault(name, row.line)
    return PhillyJob(
        name,
        submitted,
        duration,
        gpus,
        row.text("user") or user,
        user,
    )


def _time(row: Row) -> float:
    """Return when a job was submitted: seconds since the epoch, or a date (UTC unless it says)."""
    text = row.text(SUBMITTED)
    if _DIGITS.fullmatch(text) or text.startswith("-"):
        return row.real(SUBMITTED, most=_MOST_TIME)
    try:
        found = datetime.fromisoformat(text)
        seconds = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        row.wrong(
            SUBMITTED,
            f"{text!r} is no time: write it as 2017-10-09 07:01:55, or as seconds",
        )
        return 0.0
    if not 0 <= seconds <= _MOST_TIME:
        row.wrong(SUBMITTED, f"{text} is not between 1970 and 2100")
    return seconds


def object_name(text: str) -> str:
    """Return a name that Kubernetes takes; different texts stay different."""
    if _LABEL.fullmatch(text):
        return text
    kept = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:48].strip("-")
    return f"{kept or 'x'}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
