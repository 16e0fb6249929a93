"""The one entry: from what a user names to a scenario."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from alnair.model.nodes import Node
from alnair.model.plurals import counted
from alnair.sim.inputs import (
    clusters,
    detecting,
    manifests,
    openb_jobs,
    philly_jobs,
    samples,
    snapshot_jobs,
    swf_jobs,
    synthetic,
    timing,
    unplaceable_jobs,
    utilisation,
)
from alnair.sim.inputs.elastic_jobs import some_elastic
from alnair.sim.inputs.node_failures import failures
from alnair.sim.inputs.options import DEFAULTS, Found, InputOptions, Loaded
from alnair.sim.jobs import Job, Scenario
from alnair.traces import files
from alnair.traces.csv_table import TableError
from alnair.traces.files import Source, TraceFileError

#: What the engine takes for the time of the begin if the trace does not say: 0 means unknown there.
_BEGIN = 1_767_225_600.0  # 2026-01-01
_OPENB = "openb"
_SYNTHETIC = "synthetic"
_FASTEST = 1e6
_MANIFESTS = tuple(f".{kind}{packed}" for kind in ("yaml", "yml", "json") for packed in ("", ".gz"))
_TABLES = {"philly": philly_jobs.read, "swf": swf_jobs.read}


def load(sources: Sequence[str | Path] = (), options: InputOptions = DEFAULTS) -> Loaded:
    """Return the scenario of what the user named.

    Args:
        sources: A file, a folder, or the name of a trace that ships with Alnair (`samples.NAMES`);
            several files only of manifests. None at all is the shipped openb trace.
        options: Which part of it, and what it leaves open.

    Raises:
        TraceFileError: All that is wrong, a line each, with file, line, column and what to do.
    """
    problems = list(_wrong(options))
    names = [str(source) for source in sources] or [_OPENB]
    if options.history is None:
        options = samples.completed(names[0], options)
    nodes: tuple[Node, ...] = ()
    found: Found | None = None
    try:
        if options.nodes:
            nodes = clusters.named(options.nodes)
    except TraceFileError as error:
        problems.append(str(error))
    try:
        read = options.history
        found = _read(names, options, nodes) if read is None else read(options, nodes)
    except TraceFileError as error:
        problems.append(str(error))
    if problems or found is None:
        raise TraceFileError("\n".join(problems))
    return _loaded(found, ", ".join(names), options)


def _read(names: list[str], options: InputOptions, nodes: tuple[Node, ...]) -> Found:
    path = Path(names[0])
    if len(names) > 1:
        return _manifests(
            [text for name in names for text in _manifest_texts(name)], options, nodes
        )
    if path.is_dir():
        if options.format == "manifests" or not any(path.glob("*.csv*")):
            return _manifests(_texts(names[0]), options, nodes)
        return openb_jobs.read(path, options, nodes)
    if _SYNTHETIC in (options.format, names[0]) and not path.exists():
        return synthetic.read(options, nodes)
    if names[0] == _OPENB and not path.exists():
        return openb_jobs.read(None, options, nodes)
    source = _source(names[0])
    text = files.text(source)
    chosen = options.format or detecting.detect(text)
    if chosen == "openb":
        return openb_jobs.read(path, options, nodes)
    if chosen == "snapshot":
        return snapshot_jobs.read(text, str(source), options, nodes)
    if chosen == "manifests":
        return _manifests([(str(source), text)], options, nodes)
    if chosen in _TABLES:
        found, problems = _TABLES[chosen](files.lines_of(text), str(source), options, nodes)
        if problems:
            raise TraceFileError(str(TableError(problems)))
        return found
    raise TraceFileError(_unknown(text, source))


def _source(name: str) -> Source:
    if Path(name).exists():
        return Path(name)
    if samples.is_file(name):
        return samples.find(name)
    shipped = ", ".join((*samples.NAMES, _SYNTHETIC))
    raise TraceFileError(
        f"{name}: no such file or folder, and no trace that ships with Alnair ({shipped}): "
        "check the path"
    )


def _texts(name: str) -> list[tuple[str, str]]:
    """Return the manifests of a file, or of a folder and those in it, in the order of their names.

    Raises:
        TraceFileError: There are none, or some cannot be read.
    """
    path = Path(name)
    found: list[Source] = []
    if not path.is_dir():
        found.append(_source(name))
    else:
        found[:] = sorted(p for p in path.rglob("*") if p.is_file() and p.name.endswith(_MANIFESTS))
        if not found:
            raise TraceFileError(
                f"{name}: neither an openb node list nor a manifest ({', '.join(_MANIFESTS)}) is "
                "in this folder: check the path"
            )
    texts, problems = [], []
    for source in found:
        try:
            texts.append((str(source), files.text(source)))
        except TraceFileError as error:
            problems.append(str(error))
    if problems:
        raise TraceFileError("\n".join(problems))
    return texts


def _manifest_texts(name: str) -> list[tuple[str, str]]:
    """Return the same of one of several files, which cannot be of another format."""
    found = _texts(name)
    for source, text in found:
        if (other := detecting.detect(text)) not in ("", "manifests"):
            raise TraceFileError(
                f"{source}: this is a trace ({other}), and only manifests can be several: name it "
                "alone"
            )
    return found


def _manifests(
    texts: list[tuple[str, str]], options: InputOptions, nodes: tuple[Node, ...]
) -> Found:
    found, problems = manifests.read(texts, options, nodes)
    if problems:
        raise TraceFileError(str(TableError(problems)))
    return found


def _unknown(text: str, source: Source) -> str:
    if not text.strip():
        return f"{source}: the file is empty: a trace is {detecting.KNOWN}"
    if detecting.is_node_list(text):
        return f"{source}: this is a list of nodes: give it with --nodes, and a trace of jobs here"
    return (
        f"{source}, line 1: this is no format that is known: a trace is {detecting.KNOWN}; "
        "--format says which, if it is one of these"
    )


def _loaded(found: Found, source: str, options: InputOptions) -> Loaded:
    jobs = timing.cut(found.jobs, options)
    if not jobs and not found.running:
        raise TraceFileError(
            f"{source}: none of its {counted(len(found.jobs), 'job')} is left: check "
            f"--since, --until and "
            "--limit" + "".join(f"; {note}" for note in found.notes)
        )
    _refuse_same_pods((*jobs, *found.running), source)
    if options.estimate is not None:
        jobs = timing.estimated(jobs, options.estimate)
    if options.utilisation:
        jobs = utilisation.measured(jobs, options.seed)
    if options.elastic_share:
        share = options.elastic_share
        jobs = some_elastic(jobs, share, options.seed, options.profile, found.nodes)
    scenario = Scenario(
        nodes=found.nodes,
        jobs=tuple(jobs),
        node_events=failures(
            found.nodes,
            timing.end(jobs),
            mtbf=options.node_mtbf,
            mttr=options.node_mttr,
            seed=options.seed,
        ),
        objects=found.objects,
        running=found.running,
        begin=(found.begin or _BEGIN) + options.since,
    )
    return Loaded(
        scenario=scenario,
        source=source,
        format=found.format,
        notes=tuple(found.notes),
        warnings=tuple(unplaceable_jobs.warnings(jobs, found.nodes)),
    )


def _refuse_same_pods(jobs: Iterable[Job], source: str) -> None:
    """Refuse pods of one name in one namespace: a gang's are called after it, as NAME-0."""
    seen: dict[tuple[str, str], str] = {}
    for job in jobs:
        for pod in job.pods:
            if (other := seen.setdefault((pod.namespace, pod.name), job.name)) != job.name:
                raise TraceFileError(
                    f"{source}: jobs {other!r} and {job.name!r} both have a pod "
                    f"{pod.namespace}/{pod.name}: rename one of them"
                )


def _wrong(options: InputOptions) -> Iterator[str]:
    """Yield what is wrong with the options."""
    if options.limit is not None and options.limit < 1:
        yield f"--limit {options.limit}: simulate 1 job or more"
    if not 0 <= options.since < options.until:
        yield f"--since {options.since:g} --until {options.until:g}: write 0 <= since < until"
    if not 1 / _FASTEST <= options.arrivals <= _FASTEST:
        least = 1 / _FASTEST
        yield f"--arrivals {options.arrivals:g}: write a factor from {least:g} to {_FASTEST:g}"
    for name, value in (
        ("submit-at", options.submit_at),
        ("default-duration", options.default_duration),
        ("estimate", options.estimate),
    ):
        if value is not None and not value >= 0:
            yield f"--{name} {value:g}: write 0 or more"
    if not 0 <= options.node_mtbf < math.inf or not 0 < options.node_mttr < math.inf:
        yield (
            f"--node-mtbf {options.node_mtbf:g} --node-mttr {options.node_mttr:g}: write seconds; "
            "without failures leave both out"
        )
    if options.pod_units < 0:
        yield f"--pod-units {options.pod_units}: write 1 or more, or leave it out"
