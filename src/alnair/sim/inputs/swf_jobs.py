"""The Standard Workload Format of the Parallel Workloads Archive: CPU jobs of HPC clusters.

Format: Chapin et al., *Benchmarks and Standards for the Evaluation of Parallel Job Schedulers*,
JSSPP 1999; version 2.2. A line has 18 numbers, -1 is unknown; lines with a semicolon are comments
and, as `; Name: value`, the header.
"""

import re
from collections.abc import Iterable
from typing import Final

from alnair.model.cluster import Node
from alnair.sim.inputs.options import Found, Options
from alnair.sim.inputs.stamping import PodStamp, commonest, node, parts
from alnair.sim.inputs.timing import without_run_time
from alnair.sim.jobs import Job
from alnair.traces.csv_table import Problem
from alnair.traces.node_shapes import MOST_NODES
from alnair.traces.openb import TraceNode, TracePod

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
#: A core of a node made from the header has so much memory; few logs say what jobs ask for.
_MIB_PER_CORE: Final = 4096
_NAMESPACE: Final = "swf"


def read(
    lines: Iterable[str], source: str, options: Options, nodes: tuple[Node, ...]
) -> tuple[Found, list[Problem]]:
    """Return the jobs of a log, and all that is wrong with it.

    Args:
        lines: The text.
        source: Name of the file.
        options: What is missing, and how jobs are cut into pods.
        nodes: Of the cluster; empty = those of the header.

    Returns:
        What was found, of use only if nothing is wrong.
    """
    problems: list[Problem] = []
    header: dict[str, int] = {}
    jobs: list[tuple[float, ...]] = []
    seen: dict[float, int] = {}
    repeated = 0
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith(";"):
            if match := _HEADER.match(line.strip()):
                header[match[1]] = int(match[2])
            continue
        if not line.strip():
            continue
        fields = _fields(line, source, number, problems, options)
        if not fields:
            continue
        if fields[_STATUS] in _PARTS and fields[_JOB] in seen:
            repeated += 1
            continue
        if (first := seen.setdefault(fields[_JOB], number)) != number:
            text = f"job {fields[_JOB]:g} is on line {first} already: numbers must differ"
            problems.append(_problem(source, number, _JOB, text))
        jobs.append(fields)
    if not jobs and not problems:
        problems.append(Problem(source, 0, "", "there is no job in it: give the complete file"))
    if not nodes and not options.nodes:
        nodes = _header_nodes(header)
        if not nodes:
            text = (
                "its header does not say MaxNodes and MaxProcs: say what the cluster has with "
                "--nodes, such as 150x0:cpu=12,memory=48Gi"
            )
            problems.append(Problem(source, 0, "", text))
    if problems:
        return Found(format="swf", jobs=[], nodes=nodes), problems
    found = _found(jobs, options, nodes)
    found.begin = float(header.get("UnixStartTime", 0))
    if repeated:
        found.notes.append(f"{repeated} lines are parts of jobs with a line of their own: left out")
    return found, problems


def _problem(source: str, line: int, field: int, text: str) -> Problem:
    return Problem(source, line, f"{field + 1} ({_FIELDS[field]})", text)


def _fields(
    line: str, source: str, number: int, problems: list[Problem], options: Options
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
    if fields[_SUBMIT] == -1 and options.submit_at is None:
        text = "is unknown: say when such jobs come with --submit-at"
        problems.append(_problem(source, number, _SUBMIT, text))
    return fields if len(problems) == before else ()


def _header_nodes(header: dict[str, int]) -> tuple[Node, ...]:
    """Return as many nodes as the header says, with its processors spread evenly over them."""
    count, procs = header.get("MaxNodes", 0), header.get("MaxProcs", 0)
    if not 0 < count <= min(procs, MOST_NODES):
        return ()
    cores = [procs // count + (i < procs % count) for i in range(count)]
    return tuple(
        node(TraceNode(f"node-{i:04d}", size * 1000, size * _MIB_PER_CORE, 0, ""))
        for i, size in enumerate(cores)
    )


def _found(jobs: list[tuple[float, ...]], options: Options, nodes: tuple[Node, ...]) -> Found:
    size = options.pod_units or max(1, commonest(n.allocatable["cpu"] // 1000 for n in nodes))
    stamp = PodStamp(options.profile, nodes)
    made: list[Job] = []
    unknown = without = 0
    for fields in jobs:
        procs = int(fields[_PROCS] if fields[_PROCS] > 0 else fields[_ASKED_PROCS])
        duration = fields[_RUN] if fields[_RUN] > 0 else options.default_duration
        if procs <= 0:
            without += 1
            continue
        unknown += fields[_RUN] <= 0
        if duration is None:
            continue
        user = f"user-{fields[_USER]:g}" if fields[_USER] >= 0 else ""
        job = Job(
            name=f"job-{int(fields[_JOB])}",
            user=user,
            submitted=fields[_SUBMIT] if fields[_SUBMIT] >= 0 else options.submit_at or 0.0,
            pods=(),
            duration=duration,
            util=0.0,
            kind=f"app-{fields[_EXECUTABLE]:g}" if fields[_EXECUTABLE] >= 0 else "",
        )
        shapes = [_shape(cores, fields[_ASKED_MEMORY]) for cores in parts(procs, size)]
        namespace = options.namespace or user or _NAMESPACE
        made.append(stamp.job(job, namespace, shapes, estimate=max(0.0, fields[_ASKED_TIME])))
    notes = without_run_time(unknown, options)
    if without:
        notes.append(f"{without} jobs have no processors: they are left out")
    return Found(format="swf", jobs=made, nodes=nodes, notes=notes)


def _shape(cores: int, kib_per_core: float) -> TracePod:
    memory = round(cores * kib_per_core / 1024) if kib_per_core > 0 else 0
    return TracePod("", cores * 1000, memory, 0, 0)
