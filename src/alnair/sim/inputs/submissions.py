"""Pods of workloads as jobs: gangs together, each with its time and its run time."""

import math
from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from alnair.kube.objects import wire
from alnair.kube.objects.load_annotations import read_expected
from alnair.kube.objects.pod_projection import PodProjector
from alnair.model.nodes import Node
from alnair.model.plurals import counted
from alnair.model.workload import Gang, LabelSelector, NodeAffinity, Pod, Requirement, Term
from alnair.scheduler.state.nodes.tolerations import tolerated
from alnair.scheduler.state.pods.label_selectors import matches
from alnair.sim.inputs.options import Found, InputOptions
from alnair.sim.inputs.refused_requests import refused_requests
from alnair.sim.inputs.workloads import (
    EVERY_NODE,
    SYSTEM_PRIORITIES,
    PriorityClass,
    Workload,
    admitted,
    pod_name,
    submitted,
)
from alnair.sim.jobs import Job
from alnair.traces.csv_table import Problem

#: Pods of all manifests together; more are a mistake in `replicas`.
_MOST_PODS: Final = 200_000
_NO_SCHEDULER: Final = "default-scheduler"
Wrong = Callable[[str, str], None]


class _Made(msgspec.Struct):
    """Pods of a workload or a gang, on their way to a job."""

    name: str
    user: str
    pods: list[Pod]
    submitted: float
    duration: float
    util: float
    gang: Gang | None = None


class Submissions:
    """Collects workloads, and makes jobs of them when all is known.

    Args:
        options: What manifests leave open.
        problems: Of all files together.
    """

    def __init__(self, options: InputOptions, problems: list[Problem]) -> None:
        self._options = options
        self._problems = problems
        self._works: list[tuple[Workload, Wrong]] = []
        self._gangs: dict[tuple[str, str], Gang] = {}
        self._priorities = dict(SYSTEM_PRIORITIES)
        self._never: set[str] = set()
        self._default_priority = 0
        self._project = PodProjector()
        #: How often what was seen, said of one and of several.
        self._notes: Counter[tuple[str, str]] = Counter()

    def add(self, work: Workload, wrong: Wrong) -> None:
        """Take a workload; `wrong` is told of problems as (path, text)."""
        prefix = "$.spec" if work.kind == "Pod" else "$.spec.template.spec"
        if not work.template.spec.containers:
            wrong(prefix, "containers is empty or missing: a pod has one at least")
            return
        if sum(max(w.count, 0) for w, _ in self._works) + work.count > _MOST_PODS:
            wrong("$.spec.replicas", f"more than {_MOST_PODS} pods in all: check the numbers")
            return
        refused = [*refused_requests(work.template.spec)]
        for path, what in refused:
            wrong(f"{prefix}.{path}", what)
        if not refused:
            self._works.append((work, wrong))

    def add_gang(self, gang: Gang, wrong: Wrong) -> None:
        """Take a PodGroup."""
        if gang.problem:
            wrong("$", gang.problem)
        self._gangs[gang.namespace, gang.name] = msgspec.structs.replace(gang, created=0.0)

    def add_priority(self, made: PriorityClass) -> None:
        """Take a PriorityClass."""
        self._priorities[made.metadata.name] = made.value
        if made.preemption_policy == "Never":
            self._never.add(made.metadata.name)
        if made.global_default:
            self._default_priority = made.value

    def result(self, nodes: tuple[Node, ...]) -> Found:
        """Return the jobs; `begin` is the last thing that happened to pods that run already."""
        there = {node.name for node in nodes}
        made: dict[tuple[str, str, str], _Made] = {}
        for work, wrong in self._works:
            for pod, duration in self._pods(work, nodes, wrong):
                if pod.finished or pod.gated or (pod.node and pod.node not in there):
                    self._leave_out(pod)
                    continue
                self._note(made, work, pod, duration, submitted(work)[0])
        begin = max(
            (max(p.bound_at, p.created) for m in made.values() for p in m.pods if p.node),
            default=0.0,
        )
        found = Found(format="manifests", jobs=[], nodes=nodes, begin=begin)
        running = []
        for one in made.values():
            job = _job(one, begin)
            if any(pod.node for pod in job.pods):
                running.append(job)
            else:
                found.jobs.append(job)
            if one.gang is not None and len(one.pods) < one.gang.min_member:
                many = counted(one.gang.min_member, "pod")
                verb = "is" if len(one.pods) == 1 else "are"
                found.notes.append(
                    f"PodGroup {one.name} wants {many} at once, and there {verb} "
                    f"only {len(one.pods)}: they will wait for ever"
                )
        found.running = tuple(running)
        found.notes += [counted(n, *texts) for texts, n in self._notes.items()]
        return found

    # --- parts ------------------------------------------------------------------------------------

    def _pods(
        self, work: Workload, nodes: tuple[Node, ...], wrong: Wrong
    ) -> list[tuple[Pod, float]]:
        """Return the pods of a workload and how long each runs."""
        template = work.template
        inside = "$" if work.kind == "Pod" else "$.spec.template"
        if what := submitted(work)[1]:
            wrong("$.metadata.annotations", what)
        priority, preempts = self._priority(work, wrong)
        meta = msgspec.structs.replace(
            template.metadata,
            name=pod_name(work, 0),
            namespace=work.meta.namespace,
            owner_references=[work.owner] if work.owner else template.metadata.owner_references,
        )
        first = self._project(wire.PodWire(meta, admitted(template.spec), work.status))
        if first.problem:
            wrong(f"{inside}.spec", first.problem)
        if first.ignored:
            wrong(f"{inside}.metadata.annotations", first.ignored)
        scheduler = first.scheduler
        if scheduler == _NO_SCHEDULER:
            taken = f"no scheduler: {self._options.profile} is taken"
            self._notes[f"object names {taken}", f"objects name {taken}"] += 1
            scheduler = self._options.profile
        first = msgspec.structs.replace(
            first,
            scheduler=scheduler,
            priority=priority,
            preempts=first.preempts and preempts,
            uid=first.uid if work.owner is None else "",
        )
        duration = self._duration(work, first)
        if work.count == EVERY_NODE:
            return [(pod, duration) for pod in _on_every_node(first, work, nodes)]
        if not work.count:
            self._notes["object wants no pods now", "objects want no pods now"] += 1
        return [
            (msgspec.structs.replace(first, name=pod_name(work, i)), duration)
            for i in range(work.count)
        ]

    def _priority(self, work: Workload, wrong: Wrong) -> tuple[int, bool]:
        spec = work.template.spec
        name = spec.priority_class_name
        if spec.priority is not None:
            return spec.priority, name not in self._never
        if not name:
            return self._default_priority, True
        if name not in self._priorities:
            path = "$.spec" if work.kind == "Pod" else "$.spec.template.spec"
            wrong(
                f"{path}.priorityClassName",
                f"there is no PriorityClass {name!r}: add it to the manifests",
            )
            return 0, True
        return self._priorities[name], name not in self._never

    def _duration(self, work: Workload, pod: Pod) -> float:
        """Return how long a pod runs: as expected, to its deadline at most, or as the options say.

        A Job with more completions than run at once has pods that do several, one after the other.
        """
        expected = read_expected(work.template.metadata.annotations or {}).duration_s
        expected = expected or read_expected(work.meta.annotations or {}).duration_s
        ends = [float(d) for d in (work.template.spec.active_deadline_seconds, work.deadline) if d]
        if expected:
            ends.append(expected * work.rounds)
        if ends:
            return min(ends)
        fallback = self._options.default_duration
        return math.inf if fallback is None else fallback * work.rounds

    def _leave_out(self, pod: Pod) -> None:
        if pod.finished:
            one, several = "has finished", "have finished"
        elif pod.gated:
            one, several = "waits behind scheduling gates", "wait behind scheduling gates"
        else:
            one, several = "runs on a node that is not there", "run on nodes that are not there"
        self._notes[f"pod {one}: it is left out", f"pods {several}: they are left out"] += 1

    def _note(
        self,
        made: dict[tuple[str, str, str], _Made],
        work: Workload,
        pod: Pod,
        duration: float,
        at: float | None,
    ) -> None:
        gang = self._gangs.get((pod.namespace, pod.group)) if pod.group else None
        if pod.group and gang is None:
            rest = "for a PodGroup that is not there"
            self._notes[f"pod waits {rest}", f"pods wait {rest}"] += 1
        kind, name = ("PodGroup", pod.group) if gang else (work.kind, work.meta.name)
        one = made.get((kind, pod.namespace, name))
        came = at if at is not None else self._options.submit_at or 0.0
        if one is None:
            user = pod.namespace
            full = f"{user}/{name}" if kind == "Pod" else f"{user}/{kind}/{name}"
            util = pod.spec.expected_util or 100.0
            one = made[kind, user, name] = _Made(full, user, [], came, duration, util, gang)
        one.submitted = min(one.submitted, came)
        one.duration = max(one.duration, duration)
        one.pods.append(pod)


def _job(one: _Made, begin: float) -> Job:
    pods = tuple(
        msgspec.structs.replace(
            pod,
            created=0.0,
            bound_at=min(0.0, (pod.bound_at or pod.created or begin) - begin) if pod.node else 0.0,
        )
        for pod in one.pods
    )
    return Job(
        name=one.name,
        user=one.user,
        submitted=one.submitted,
        pods=pods,
        gang=one.gang,
        duration=one.duration,
        util=one.util,
    )


def _on_every_node(first: Pod, work: Workload, nodes: tuple[Node, ...]) -> list[Pod]:
    """Return a DaemonSet's pods, each for its node as its controller says by an affinity."""
    wanted = LabelSelector(
        tuple(Requirement(key, "In", (value,)) for key, value in first.spec.node_selector)
    )
    found = []
    for node in nodes:
        taints = [t for t in node.taints if t.effect in ("NoSchedule", "NoExecute")]
        if not matches(wanted, node.labels) or not all(
            tolerated(taint, first.spec.tolerations) for taint in taints
        ):
            continue
        spec = msgspec.structs.replace(first.spec, affinity=_only(node.name))
        found.append(
            msgspec.structs.replace(first, name=f"{work.meta.name}-{node.name}", spec=spec)
        )
    return found


def _only(node: str) -> NodeAffinity:
    return NodeAffinity((Term(fields=(Requirement("metadata.name", "In", (node,)),)),))
