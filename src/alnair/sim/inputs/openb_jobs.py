"""The openb trace with its times (Weng et al., USENIX ATC'23): one job per pod."""

from pathlib import Path

from alnair.model.nodes import Node
from alnair.sim.inputs import clusters
from alnair.sim.inputs.options import Found, InputOptions
from alnair.sim.inputs.pod_templates import PodStamp, node
from alnair.sim.inputs.timing import without_run_time
from alnair.sim.jobs import Job
from alnair.traces import files, openb_files
from alnair.traces.csv_table import Problem, TableError
from alnair.traces.files import Source, TraceFileError
from alnair.traces.openb import TIME_COLUMNS, PodTimes, TracePod, read_pods, read_timed_pods

_NAMESPACE = "openb"


def read(trace: Path | None, options: InputOptions, nodes: tuple[Node, ...]) -> Found:
    """Return the jobs of a pod list and the nodes beside it.

    A pod runs from `scheduled_time` to `deletion_time`; pods that never got a node have no run
    time.

    Args:
        trace: A folder with both lists, or a pod list; None for the shipped trace.
        options: Which list, and what times are missing.
        nodes: Instead of those beside the list; empty = those.

    Raises:
        TraceFileError: All that is wrong with the files.
    """
    problems: list[str] = []
    is_list = trace is not None and not trace.is_dir()
    folder = trace.parent if trace is not None and is_list else trace
    rows: tuple[tuple[TracePod, PodTimes | None], ...] = ()
    try:
        if not nodes:
            nodes = tuple(map(node, clusters.listed(openb_files.node_list(folder))))
    except TraceFileError as error:
        problems.append(str(error))
    try:
        wanted = Path(options.pods) if options.pods else None
        source = openb_files.pod_list(folder, trace if is_list and wanted is None else wanted)
        rows = _pods(source, options)
    except TraceFileError as error:
        problems.append(str(error))
    if problems:
        raise TraceFileError("\n".join(problems))
    return _found(rows, options, nodes)


def _pods(source: Source, options: InputOptions) -> tuple[tuple[TracePod, PodTimes | None], ...]:
    lines = files.lines(source)
    problems: list[Problem] = []
    header = lines[0].lower() if lines else ""
    rows: tuple[tuple[TracePod, PodTimes | None], ...]
    if any(column in header for column in TIME_COLUMNS):
        rows = read_timed_pods(lines, str(source), problems)
    else:
        rows = tuple((pod, None) for pod in read_pods(lines, str(source), problems))
        if not problems and (options.submit_at is None or options.default_duration is None):
            missing = ", ".join(TIME_COLUMNS)
            problems.append(
                Problem(
                    str(source),
                    1,
                    "",
                    f"this list has no times ({missing}; the multigpu lists have none): take "
                    "another list, or say when the pods come and how long they run "
                    "(--submit-at 0 --default-duration 3600)",
                )
            )
    if problems:
        raise TraceFileError(str(TableError(problems)))
    return rows


def _found(
    rows: tuple[tuple[TracePod, PodTimes | None], ...],
    options: InputOptions,
    nodes: tuple[Node, ...],
) -> Found:
    stamp = PodStamp(options.profile, nodes, compute=options.shares == "compute")
    namespace = options.namespace or _NAMESPACE
    jobs = []
    unknown = 0
    for pod, times in rows:
        duration: float | None = None
        if times is not None and times.scheduled is not None and times.deleted > times.scheduled:
            duration = float(times.deleted - times.scheduled)
        if duration is None:
            unknown += 1
            duration = options.default_duration
        if duration is None:
            continue
        came = float(times.created) if times is not None else options.submit_at or 0.0
        job = Job(name=pod.name, submitted=came, pods=(), duration=duration)
        jobs.append(stamp.job(job, namespace, (pod,)))
    return Found(format="openb", jobs=jobs, nodes=nodes, notes=without_run_time(unknown, options))
