"""Kubernetes manifests: what the controllers of a cluster would make of them, as jobs."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.watched_kinds import OBJECTS, PEERS
from alnair.kube.objects.wire import NodeWire
from alnair.kube.pod_groups import dialects
from alnair.model.nodes import Node
from alnair.model.plurals import counted
from alnair.model.workload import Gang
from alnair.sim.inputs import training_jobs
from alnair.sim.inputs.options import Found, InputOptions
from alnair.sim.inputs.submissions import Submissions
from alnair.sim.inputs.workloads import KINDS, PriorityClass, workload
from alnair.traces import yaml_documents
from alnair.traces.csv_table import Problem
from alnair.traces.yaml_documents import Document

_OTHERS: Final = {(r.api_version, r.kind): (r.type, project) for r, project in (*OBJECTS, *PEERS)}
_GROUPS: Final[dict[tuple[str, str], tuple[Any, Callable[[Any], Gang]]]] = {
    (dialect.resource.api_version, "PodGroup"): (dialect.resource.type, dialect.project)
    for dialect in dialects.CUSTOM
} | {
    (resource.api_version, "PodGroup"): (
        dialects.NativeWire,
        dialects.NativeProjector(resource.api_version),
    )
    for resource in dialects.NATIVE.values()
}
_NODE: Final = ("v1", "Node")
_PRIORITY: Final = ("scheduling.k8s.io/v1", "PriorityClass")
_DEFAULT_NAMESPACE: Final = "default"
#: Kinds whose objects have no namespace.
_CLUSTER_WIDE: Final = frozenset(
    [_NODE[1], _PRIORITY[1], *(r.kind for r, _ in OBJECTS if not r.namespaced)]
)


def read(
    texts: Iterable[tuple[str, str]],
    options: InputOptions,
    nodes: tuple[Node, ...],
    priorities: Iterable[PriorityClass] = (),
) -> tuple[Found, list[Problem]]:
    """Return the jobs, nodes and further objects of files, and all that is wrong with them.

    Args:
        texts: Names of the files, and their texts.
        options: When pods come and how long they run where their manifests do not say.
        nodes: Instead of those of the files; empty = those.
        priorities: That are there besides those of the files, which go first.

    Returns:
        What was found, of use only if nothing is wrong.
    """
    problems: list[Problem] = []
    reader = _Reader(options, problems, priorities)
    for source, text in texts:
        before = len(problems)
        found = yaml_documents.read(text, source, problems)
        if not found and len(problems) == before:
            problems.append(Problem(source, 0, "", "there is no object in it"))
        for document in found:
            reader.take(document, text)
    return reader.result(nodes), problems


class _Reader:
    """Takes objects one by one; pods are made of them at the end, when all is known."""

    def __init__(
        self, options: InputOptions, problems: list[Problem], priorities: Iterable[PriorityClass]
    ) -> None:
        self._options = options
        self._problems = problems
        self._nodes: list[Node] = []
        self._objects: list[tuple[str, str, str, object]] = []
        self._submissions = Submissions(options, problems)
        for one in priorities:
            self._submissions.add_priority(one)
        self._seen: dict[tuple[str, str, str], str] = {}
        self._ignored: Counter[str] = Counter()
        self._trainings: dict[tuple[str, str], training_jobs.Bounds] = {}

    def take(self, document: Document, text: str) -> None:
        """Read an object."""

        def wrong(path: str, what: str) -> None:
            self._problems.append(yaml_documents.place(text, document, path, what))

        value = document.value
        api, kind = value.get("apiVersion"), value.get("kind")
        if not isinstance(api, str) or not isinstance(kind, str):
            wrong("$", "apiVersion or kind is missing: write both, as in 'apiVersion: v1'")
            return
        key = (api, kind)
        if key not in _KNOWN:
            self._ignored[kind] += 1
            if kind in _KNOWN_KINDS:
                wrong("$.apiVersion", f"{kind} is not known in {api}: {_versions(kind)}")
            return
        try:
            made = msgspec.convert(value, _KNOWN[key])
        except msgspec.ValidationError as error:
            what, _, path = str(error).partition(" - at `")
            wrong(path.removesuffix("`") or "$", what.replace("`", ""))
            return
        meta = made.metadata
        if kind not in _CLUSTER_WIDE:
            meta.namespace = meta.namespace or self._options.namespace or _DEFAULT_NAMESPACE
        if not meta.name:
            wrong("$.metadata", f"name is missing: give the {kind} one")
            return
        place = f"{document.source}, line {document.line}"
        before = self._seen.setdefault((kind, meta.namespace, meta.name), place)
        if before != place:
            wrong("$.metadata.name", f"{kind} {meta.name!r} is also at {before}: names must differ")
        else:
            self._keep(key, made, wrong)

    def _keep(self, key: tuple[str, str], made: Any, wrong: Callable[[str, str], None]) -> None:
        """Note an object that can be read."""
        kind, meta = key[1], made.metadata
        if key in KINDS:
            self._submissions.add(workload(kind, made), wrong)
        elif key in training_jobs.KINDS:
            self._take_training(kind, made, wrong)
        elif key in _GROUPS:
            self._submissions.add_gang(_GROUPS[key][1](made), wrong)
        elif key == _PRIORITY:
            self._submissions.add_priority(made)
        elif key == _NODE:
            node = project_node(made)
            if node.problem:
                wrong("$", node.problem)
            self._nodes.append(node)
        else:
            self._objects.append((kind, meta.namespace, meta.name, _OTHERS[key][1](made)))

    def _take_training(
        self, kind: str, made: training_jobs.TrainingManifest, wrong: Callable[[str, str], None]
    ) -> None:
        """Read a training job: its workers, and their PodGroup; a launcher takes no GPU."""
        limits = training_jobs.bounds(kind, made)
        gang = training_jobs.group(made, limits)
        try:
            work = training_jobs.workers(kind, made, limits)
        except msgspec.ValidationError as error:
            wrong("$.spec.workersSpec", str(error).replace("`", ""))
            return
        self._trainings[gang.namespace, gang.name] = limits
        self._submissions.add_gang(gang, wrong)
        self._submissions.add(work, wrong)
        if made.spec.launcher_spec is not None:
            article = "an" if kind.startswith("E") else "a"
            self._ignored[f"launcher of {article} {kind}"] += 1

    def result(self, nodes: tuple[Node, ...]) -> Found:
        """Return all that was read; what is wrong with it as a whole goes to the problems."""
        notes = []
        if self._ignored:
            kinds = ", ".join(f"{kind} ({n})" for kind, n in sorted(self._ignored.items()))
            notes.append(f"objects that scheduling does not depend on are left out: {kinds}")
        if nodes and self._nodes:
            notes.append(
                f"--nodes takes the place of {counted(len(self._nodes), 'node')} of the manifests"
            )
        nodes = nodes or tuple(self._nodes)
        if not nodes and not self._options.nodes:
            self._problems.append(
                Problem(
                    "manifests",
                    0,
                    "",
                    "there is no Node among them: add some ('kubectl get nodes -o yaml'), or name "
                    "some with --nodes, such as 4x8xA100",
                )
            )
        found = self._submissions.result(nodes)
        found.objects = tuple(self._objects)
        found.trainings = self._trainings
        found.notes = notes + found.notes
        return found


_KNOWN: Final[dict[tuple[str, str], Any]] = {
    **KINDS,
    **training_jobs.KINDS,
    **{key: kind for key, (kind, _) in _GROUPS.items()},
    **{key: kind for key, (kind, _) in _OTHERS.items() if key not in KINDS},
    _NODE: NodeWire,
    _PRIORITY: PriorityClass,
}
_KNOWN_KINDS: Final = frozenset(kind for _, kind in _KNOWN)


def _versions(kind: str) -> str:
    return "write " + " or ".join(sorted(api for api, known in _KNOWN if known == kind))
