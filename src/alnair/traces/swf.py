"""The Standard Workload Format of the Parallel Workloads Archive: logs of CPU jobs of HPC clusters.

Format: Chapin et al., *Benchmarks and Standards for the Evaluation of Parallel Job Schedulers*,
JSSPP 1999; version 2.2. A line has 18 numbers, -1 is unknown; lines with a semicolon are comments
and, as `; Name: value`, the header.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from alnair.traces.csv_table import Problem

#: The fields, by their place in a line.
_FIELDS: Final = (
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average CPU time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
)
_JOB, _SUBMIT, _RUN, _PROCS, _ASKED_PROCS, _ASKED_TIME = 0, 1, 3, 4, 7, 8
_ASKED_MEMORY, _STATUS, _USER, _EXECUTABLE = 9, 10, 11, 13
#: Statuses of lines that may be about a part of a job that has a line of its own.
_PARTS: Final = (2, 3, 4)
_NUMBER: Final = r"-?(?:[0-9]{1,15}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})"
_LINE: Final = re.compile(rf"\s*{_NUMBER}(?:\s+{_NUMBER}){{17}}\s*")
_WORD: Final = re.compile(_NUMBER)
_HEADER: Final = re.compile(r";\s*(UnixStartTime|MaxNodes|MaxProcs):\s*(\d{1,12})\s*")
_MOST_PROCS: Final = 10_000_000
_MOST_SECONDS: Final = 10 * 366 * 86400.0


class SwfJob(NamedTuple):
    """A line of a log; what is not known is negative, `processors` 0.

    Attributes:
        submit, run: seconds since the log's begin, and seconds.
        processors: allocated, or else requested.
        asked_time: seconds that the user requested.
        asked_memory: KiB per processor.
    """

    number: int
    submit: float
    run: float
    processors: int
    asked_time: float
    asked_memory: float
    user: float
    executable: float


class SwfLog(msgspec.Struct, frozen=True):
    """A log.

    Attributes:
        header: MaxNodes, MaxProcs and UnixStartTime, those that it has.
        jobs: in the order of the file.
        repeated: lines about parts of jobs that have a line of their own; they are left out.
    """

    header: dict[str, int]
    jobs: list[SwfJob]
    repeated: int


def read_log(
    lines: Iterable[str], source: str, problems: list[Problem], *, needs_submit: bool
) -> SwfLog:
    """Read a log.

    Args:
        lines: The text.
        source: Name of the file.
        problems: Filled with all that is wrong; the result is of use only if nothing was added.
        needs_submit: Whether an unknown submit time is wrong.
    """
    header: dict[str, int] = {}
    jobs: list[SwfJob] = []
    seen: dict[float, int] = {}
    repeated = 0
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith(";"):
            if match := _HEADER.match(line.strip()):
                header[match[1]] = int(match[2])
            continue
        if not line.strip():
            continue
        fields = _fields(line, source, number, problems, needs_submit=needs_submit)
        if not fields:
            continue
        if fields[_STATUS] in _PARTS and fields[_JOB] in seen:
            repeated += 1
            continue
        if (first := seen.setdefault(fields[_JOB], number)) != number:
            text = f"job {fields[_JOB]:g} is on line {first} already: numbers must differ"
            problems.append(_problem(source, number, _JOB, text))
        jobs.append(_job(fields))
    if not jobs and not problems:
        problems.append(Problem(source, 0, "", "there is no job in it: give the complete file"))
    return SwfLog(header, jobs, repeated)


def _job(fields: tuple[float, ...]) -> SwfJob:
    procs = int(fields[_PROCS] if fields[_PROCS] > 0 else fields[_ASKED_PROCS])
    return SwfJob(
        number=int(fields[_JOB]),
        submit=fields[_SUBMIT],
        run=fields[_RUN],
        processors=max(0, procs),
        asked_time=fields[_ASKED_TIME],
        asked_memory=fields[_ASKED_MEMORY],
        user=fields[_USER],
        executable=fields[_EXECUTABLE],
    )


def _problem(source: str, line: int, field: int, text: str) -> Problem:
    return Problem(source, line, f"{field + 1} ({_FIELDS[field]})", text)


def _fields(
    line: str, source: str, number: int, problems: list[Problem], *, needs_submit: bool
) -> tuple[float, ...]:
    """Return the numbers of a line; empty if they cannot be used."""
    words = line.split()
    if not _LINE.fullmatch(line):
        if len(words) != len(_FIELDS):
            text = f"{len(words)} fields, but a line of SWF has {len(_FIELDS)}"
            problems.append(Problem(source, number, "", text))
            return ()
        problems.extend(
            _problem(source, number, i, f"{word!r} is not a number: write digits, -1 = unknown")
            for i, word in enumerate(words)
            if not _WORD.fullmatch(word)
        )
        return ()
    fields = tuple(map(float, words))
    before = len(problems)
    for i, most in (
        (_SUBMIT, _MOST_SECONDS),
        (_RUN, _MOST_SECONDS),
        (_PROCS, _MOST_PROCS),
        (_ASKED_PROCS, _MOST_PROCS),
        (_ASKED_TIME, _MOST_SECONDS),
    ):
        if fields[i] < 0 and fields[i] != -1:
            text = f"{words[i]} is negative: write 0 or more, -1 = unknown"
            problems.append(_problem(source, number, i, text))
        elif fields[i] > most:
            text = f"{words[i]} is more than {most:g}: check the unit"
            problems.append(_problem(source, number, i, text))
    if fields[_JOB] < 0 or fields[_JOB] != int(fields[_JOB]):
        text = f"{words[_JOB]} is no number of a job: write a whole number"
        problems.append(_problem(source, number, _JOB, text))
    if needs_submit and fields[_SUBMIT] == -1:
        text = "is unknown: say when such jobs come with --submit-at"
        problems.append(_problem(source, number, _SUBMIT, text))
    return fields if len(problems) == before else ()
