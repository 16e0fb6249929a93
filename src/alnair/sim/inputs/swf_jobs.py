"""A log in the Standard Workload Format (`traces.swf`) as jobs: CPU jobs of HPC clusters."""

from collections.abc import Iterable
from typing import Final

from alnair.model.nodes import Node
from alnair.model.plurals import counted
from alnair.sim.inputs.options import Found, InputOptions
from alnair.sim.inputs.pod_templates import PodStamp, commonest, node, parts
from alnair.sim.inputs.timing import without_run_time
from alnair.sim.jobs import Job
from alnair.traces.csv_table import Problem
from alnair.traces.node_shapes import MOST_NODES
from alnair.traces.openb import TraceNode, TracePod
from alnair.traces.swf import SwfJob, read_log

#: A core of a node made from the header has so much memory; few logs say what jobs ask for.
_MIB_PER_CORE: Final = 4096
_NAMESPACE: Final = "swf"


def read(
    lines: Iterable[str], source: str, options: InputOptions, nodes: tuple[Node, ...]
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
    log = read_log(lines, source, problems, needs_submit=options.submit_at is None)
    if not nodes and not options.nodes:
        nodes = _header_nodes(log.header)
        if not nodes:
            text = (
                "its header does not say MaxNodes and MaxProcs: say what the cluster has with "
                "--nodes, such as 150x0:cpu=12,memory=48Gi"
            )
            problems.append(Problem(source, 0, "", text))
    if problems:
        return Found(format="swf", jobs=[], nodes=nodes), problems
    found = _found(log.jobs, options, nodes)
    found.begin = float(log.header.get("UnixStartTime", 0))
    if log.repeated:
        text = (
            f"left out: {counted(log.repeated, 'line')} for parts of jobs with a line of their own"
        )
        found.notes.append(text)
    return found, problems


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


def _found(jobs: list[SwfJob], options: InputOptions, nodes: tuple[Node, ...]) -> Found:
    size = options.pod_units or max(1, commonest(n.allocatable["cpu"] // 1000 for n in nodes))
    stamp = PodStamp(options.profile, nodes)
    made: list[Job] = []
    unknown = without = 0
    for found in jobs:
        if not found.processors:
            without += 1
            continue
        duration = found.run if found.run > 0 else options.default_duration
        unknown += found.run <= 0
        if duration is None:
            continue
        user = f"user-{found.user:g}" if found.user >= 0 else ""
        job = Job(
            name=f"job-{found.number}",
            user=user,
            submitted=found.submit if found.submit >= 0 else options.submit_at or 0.0,
            pods=(),
            duration=duration,
            util=0.0,
            kind=f"app-{found.executable:g}" if found.executable >= 0 else "",
        )
        shapes = [_shape(cores, found.asked_memory) for cores in parts(found.processors, size)]
        namespace = options.namespace or user or _NAMESPACE
        made.append(stamp.job(job, namespace, shapes, estimate=max(0.0, found.asked_time)))
    notes = without_run_time(unknown, options)
    if without:
        notes.append(f"left out: {counted(without, 'job')} without processors")
    return Found(format="swf", jobs=made, nodes=nodes, notes=notes)


def _shape(cores: int, kib_per_core: float) -> TracePod:
    memory = round(cores * kib_per_core / 1024) if kib_per_core > 0 else 0
    return TracePod("", cores * 1000, memory, 0, 0)
