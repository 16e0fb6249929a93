"""What would be submitted: Kubernetes manifests as pods and PodGroups, as admission leaves them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from alnair.kube import wire
from alnair.kube.podgroups import (
    BY_API,
    NATIVE_GROUP,
    GangProjector,
    NativeProjector,
    NativeWire,
    PodGroupWire,
)
from alnair.kube.projection import PodProjector, project_node
from alnair.model import names
from alnair.model.cluster import Node
from alnair.model.workload import Gang, Pod
from alnair.sim.whatif.documents import Document, ManifestError

#: Kinds that hold a pod template, and the field that says how many pods of it there are.
_TEMPLATES: Final = {
    "Job": "parallelism",
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "StatefulSet": "replicas",
    "ReplicationController": "replicas",
}
#: Controllers whose name their pods' selectors know.
_OWNERS: Final = {"Deployment": "ReplicaSet"}
_MOST_PODS: Final = 100_000
_PARTS: Final = (names.VGPU_MEMORY, names.VGPU_COMPUTE)


class Priority(msgspec.Struct, frozen=True):
    """What a PriorityClass stands for; `preempts` is false with preemptionPolicy Never."""

    value: int
    preempts: bool = True
    is_default: bool = False


#: Those that every cluster has.
SYSTEM_PRIORITIES: Final = {
    "system-cluster-critical": Priority(2_000_000_000),
    "system-node-critical": Priority(2_000_001_000),
}


class Submission(msgspec.Struct, frozen=True):
    """What manifests ask for.

    Attributes:
        left_out: kinds of objects that place nothing, and their names.
    """

    pods: tuple[Pod, ...] = ()
    gangs: tuple[Gang, ...] = ()
    left_out: tuple[str, ...] = ()


def submission(
    documents: Iterable[Document], priorities: Mapping[str, Priority], namespace: str = "default"
) -> Submission:
    """Return the pods and PodGroups of manifests.

    Args:
        documents: objects, in their order.
        priorities: PriorityClasses of the cluster; those among the documents go first.
        namespace: of objects that name none.

    Raises:
        ManifestError: says all that is wrong.
    """
    documents = list(documents)
    reader = _Reader(priorities, namespace)
    for document in documents:
        if document.raw["kind"] == "PriorityClass":
            reader.priority_class(document)
    for document in documents:
        reader.take(document)
    if reader.problems:
        raise ManifestError("\n".join(reader.problems))
    return Submission(tuple(reader.pods), tuple(reader.gangs), tuple(reader.left_out))


def copies(one: Submission, count: int) -> Submission:
    """Return a submission so many times: the second time `-2` is added to the names, and so on."""
    own = {(gang.namespace, gang.name) for gang in one.gangs}
    pods, gangs = list(one.pods), list(one.gangs)
    for number in range(2, count + 1):
        end = f"-{number}"
        gangs += [replace(gang, name=gang.name + end) for gang in one.gangs]
        pods += [
            replace(
                pod,
                uid=pod.uid + end,
                name=pod.name + end,
                group=pod.group + end if (pod.namespace, pod.group) in own else pod.group,
            )
            for pod in one.pods
        ]
    return replace(one, pods=tuple(pods), gangs=tuple(gangs))


def new_nodes(documents: Iterable[Document]) -> tuple[Node, ...]:
    """Return the nodes of Node manifests.

    Raises:
        ManifestError: some are none, or cannot be read.
    """
    problems: list[str] = []
    found: list[Node] = []
    for document in documents:
        if document.raw["kind"] != "Node":
            problems.append(document.problem("only nodes can be added: leave it away"))
            continue
        node = document.convert(document.raw, wire.NodeWire, problems)
        if node is None:
            continue
        projected = project_node(node)
        if not projected.name:
            problems.append(document.problem("it has no name: write metadata.name", "$.metadata"))
        elif projected.problem:
            problems.append(document.problem(projected.problem))
        elif not projected.allocatable:
            text = "it has no status.allocatable, so nothing would fit: write what it offers"
            problems.append(document.problem(text))
        found.append(projected)
    if problems:
        raise ManifestError("\n".join(problems))
    return tuple(found)


class _Reader:
    def __init__(self, priorities: Mapping[str, Priority], namespace: str) -> None:
        self.pods: list[Pod] = []
        self.gangs: list[Gang] = []
        self.problems: list[str] = []
        self.left_out: list[str] = []
        self._priorities = {**SYSTEM_PRIORITIES, **priorities}
        self._namespace = namespace
        self._project = PodProjector()

    def priority_class(self, document: Document) -> None:
        raw = document.raw
        value, name = raw.get("value"), self._name(document, raw)
        if not isinstance(value, int):
            self.problems.append(document.problem("value: write a whole number", "$.value"))
        elif name:
            preempts = raw.get("preemptionPolicy") != "Never"
            default = bool(raw.get("globalDefault"))
            self._priorities[name] = Priority(value, preempts, default)

    def take(self, document: Document) -> None:
        kind, api = document.raw["kind"], str(document.raw.get("apiVersion", ""))
        if kind == "Pod":
            self._pod(document, document.raw, "$", self._name(document, document.raw))
        elif kind in _TEMPLATES:
            self._controlled(document, kind)
        elif kind == "PodGroup":
            self._gang(document, api)
        elif kind != "PriorityClass":
            meta = document.raw.get("metadata")
            name = meta.get("name", "") if isinstance(meta, dict) else ""
            self.left_out.append(f"{kind} {name}")

    def _name(self, document: Document, raw: Mapping[str, Any]) -> str:
        meta = raw.get("metadata")
        meta = meta if isinstance(meta, dict) else {}
        name = meta.get("name") or (meta.get("generateName") or "").rstrip("-")
        if not name:
            self.problems.append(
                document.problem("it has no name: write metadata.name", "$.metadata")
            )
        return str(name)

    def _namespace_of(self, document: Document) -> str:
        meta = document.raw.get("metadata")
        return str((meta.get("namespace") if isinstance(meta, dict) else "") or self._namespace)

    def _controlled(self, document: Document, kind: str) -> None:
        name = self._name(document, document.raw)
        spec = document.raw.get("spec")
        template = spec.get("template") if isinstance(spec, dict) else None
        if not isinstance(spec, dict) or not isinstance(template, dict):
            self.problems.append(document.problem("it has no pods: write spec.template", "$.spec"))
            return
        field = _TEMPLATES[kind]
        count = spec.get(field, 1)
        if kind == "Job" and isinstance(done := spec.get("completions"), int):
            count = min(count, done) if isinstance(count, int) else count
        if not isinstance(count, int) or not 0 <= count <= _MOST_PODS:
            text = f"spec.{field}: write a whole number from 0 to {_MOST_PODS}"
            self.problems.append(document.problem(text, f"$.spec.{field}"))
            return
        limit = spec.get("activeDeadlineSeconds")
        owner = {
            "apiVersion": document.raw.get("apiVersion", ""),
            "kind": _OWNERS.get(kind, kind),
            "name": name,
            "uid": f"submitted-{kind}-{name}",
            "controller": True,
        }
        before = len(self.problems)
        for number in range(count):
            metadata = template.get("metadata") or {}
            body = {**template, "metadata": {**metadata, "ownerReferences": [owner]}}
            if limit and isinstance(body.get("spec"), dict):
                body["spec"] = {"activeDeadlineSeconds": limit, **body["spec"]}
            self._pod(document, body, "$.spec.template", f"{name}-{number}" if name else "")
            if len(self.problems) > before:
                return  # the others are like this one

    def _pod(self, document: Document, body: Mapping[str, Any], path: str, name: str) -> None:
        raw = {k: v for k, v in body.items() if k in ("metadata", "spec")}
        pod = document.convert(raw, wire.PodWire, self.problems, path)
        if pod is None:
            return
        if not pod.spec.containers:
            text = "it has no containers: write spec.containers"
            self.problems.append(document.problem(text, f"{path}.spec"))
            return
        if pod.spec.node_name:
            text = "spec.nodeName is set, so no scheduler places it: leave it away"
            self.problems.append(document.problem(text, f"{path}.spec.nodeName"))
            return
        namespace = self._namespace_of(document)
        pod.metadata.name = name
        pod.metadata.namespace = namespace
        pod.metadata.uid = f"submitted-{namespace}-{name}"
        pod.metadata.creation_timestamp = ""
        pod.metadata.deletion_timestamp = None
        self._admit(document, pod, raw["spec"], path)
        found = self._project(pod)
        if found.problem:
            self.problems.append(document.problem(found.problem, path))
        self.pods.append(found)

    def _admit(
        self, document: Document, pod: wire.PodWire, spec: Mapping[str, Any], path: str
    ) -> None:
        """Do to a pod what the API server does when it is created."""
        wanted = spec.get("priorityClassName")
        default = next((p for p in self._priorities.values() if p.is_default), None)
        priority = self._priorities.get(str(wanted)) if wanted else default
        if wanted and priority is None and pod.spec.priority is None:
            known = ", ".join(sorted(self._priorities))
            text = (
                f"priorityClassName {wanted!r} is not known (known are {known}): add the "
                "PriorityClass to the file, or write spec.priority"
            )
            self.problems.append(document.problem(text, f"{path}.spec.priorityClassName"))
        elif priority is not None and pod.spec.priority is None:
            pod.spec.priority = priority.value
            if not priority.preempts and pod.spec.preemption_policy is None:
                pod.spec.preemption_policy = "Never"
        for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ())):
            part = container.resources
            limits = part.limits if part else None
            if part and limits and names.VGPU not in limits and any(p in limits for p in _PARTS):
                part.requests = {**limits, **(part.requests or {}), names.VGPU: "1"}

    def _gang(self, document: Document, api: str) -> None:
        if api not in BY_API:
            text = f"apiVersion {api!r} is not known: write one of {', '.join(BY_API)}"
            self.problems.append(document.problem(text, "$.apiVersion"))
            return
        native = api.startswith(f"{NATIVE_GROUP}/")
        kind = NativeWire if native else PodGroupWire
        project: Callable[[Any], Gang] = NativeProjector(api) if native else GangProjector(api)
        body = {k: v for k, v in document.raw.items() if k in ("metadata", "spec")}
        group = document.convert(body, kind, self.problems)
        name = self._name(document, document.raw)
        if group is None or not name:
            return
        group.metadata.name, group.metadata.namespace = name, self._namespace_of(document)
        group.metadata.creation_timestamp = ""
        gang = project(group)
        if gang.problem:
            self.problems.append(document.problem(gang.problem))
        self.gangs.append(gang)
