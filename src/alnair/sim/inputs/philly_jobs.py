"""A table in the manner of Microsoft's Philly trace (`traces.job_table`) as GPU jobs."""

from collections.abc import Iterable

from alnair.model.nodes import Node
from alnair.model.plurals import counted
from alnair.sim.inputs.options import Found, InputOptions
from alnair.sim.inputs.pod_templates import PodStamp, commonest, gpu_shape, parts
from alnair.sim.inputs.timing import without_run_time
from alnair.sim.jobs import Job
from alnair.traces.csv_table import Problem
from alnair.traces.job_table import PhillyJob, object_name, read_table
from alnair.traces.node_shapes import EXAMPLES

_NAMESPACE = "philly"


def read(
    lines: Iterable[str], source: str, options: InputOptions, nodes: tuple[Node, ...]
) -> tuple[Found, list[Problem]]:
    """Return the jobs of a table, and all that is wrong with it.

    Args:
        lines: The text.
        source: Name of the file.
        options: What is missing, and how jobs are cut into pods.
        nodes: Of the cluster; the table has none.

    Returns:
        What was found, of use only if nothing is wrong.
    """
    problems: list[Problem] = []
    jobs = read_table(lines, source, problems)
    size = options.pod_units or commonest(len(node.gpus) for node in nodes)
    if not size and (nodes or not options.nodes):
        text = f"this table has no nodes with GPUs: name some with --nodes, such as {EXAMPLES}"
        problems.append(Problem(source, 0, "", text))
    if problems or not size:
        return Found(format="philly", jobs=[], nodes=nodes), problems
    return _found(jobs, options, nodes, size), problems


def _found(
    jobs: list[PhillyJob], options: InputOptions, nodes: tuple[Node, ...], size: int
) -> Found:
    stamp = PodStamp(options.profile, nodes)
    begin = min((job.submitted for job in jobs), default=0.0)
    namespaces: dict[str, str] = {}
    made: list[Job] = []
    unknown = without = 0
    for line in jobs:
        if not line.gpus:
            without += 1
            continue
        duration: float | None = line.duration
        if not line.duration:
            unknown += 1
            duration = options.default_duration
        if duration is None:
            continue
        namespace = options.namespace or namespaces.get(line.where)
        if namespace is None:
            namespace = namespaces[line.where] = object_name(line.where or _NAMESPACE)
        job = Job(
            name=line.name,
            user=line.user,
            submitted=line.submitted - begin,
            pods=(),
            duration=duration,
        )
        shapes = [gpu_shape(gpus) for gpus in parts(line.gpus, size)]
        made.append(stamp.job(job, namespace, shapes))
    notes = without_run_time(unknown, options)
    if without:
        notes.append(f"left out: {counted(without, 'job')} without a GPU")
    return Found(format="philly", jobs=made, nodes=nodes, begin=begin, notes=notes)
