"""Requirements of a pod that no node at all meets: mostly typing errors, so say what there is."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from alnair.model import names
from alnair.model.near_names import near
from alnair.model.workload import PodSpec, Requirement
from alnair.scheduler.advice.diagnosis import LabelValue, UnmetLabel
from alnair.scheduler.framework import known_labels
from alnair.scheduler.framework.selector_validation import is_well_formed
from alnair.scheduler.state.cluster import Cluster

#: Values that are named of one label, and requirements of one pod.
_VALUES: Final = 8
_REQUIREMENTS: Final = 8
_RESOURCES: Final = "spec.containers[*].resources"
_TERMS: Final = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
)


def unmet_labels(spec: PodSpec, cluster: Cluster) -> list[UnmetLabel]:
    """Return what the pod requires of resources, labels, names and GPU models that no node has.

    A term that is malformed matches nothing whatever nodes there are, so it is left out.
    """
    found: list[UnmetLabel] = []
    for field, requirement, values, keys in _required(spec, cluster):
        if len(found) == _REQUIREMENTS:
            break
        there = values()
        shown = _nearest_first(requirement, there)
        found.append(
            UnmetLabel(
                field=field,
                key=requirement.key,
                operator=requirement.operator,
                asked=requirement.values,
                values=tuple(LabelValue(value, there[value]) for value in shown),
                more=len(there) - len(shown),
                keys=() if there else near(requirement.key, keys()),
            )
        )
    return found


_Unmet = tuple[str, Requirement, Callable[[], Counter[str]], Callable[[], frozenset[str]]]


def _required(spec: PodSpec, cluster: Cluster) -> Iterator[_Unmet]:
    """Return each unmet requirement: its field, it, and what values and keys there are."""

    def of_label(field: str, requirement: Requirement) -> Iterator[_Unmet]:
        if not known_labels.is_met(requirement, cluster):
            yield (
                field,
                requirement,
                lambda: known_labels.label_values(requirement.key, cluster),
                cluster.columns.labels.keys,
            )

    for name in known_labels.unoffered_resources(spec, cluster):
        requirement = Requirement(name, "")
        yield _RESOURCES, requirement, Counter, lambda: known_labels.offered_resources(cluster)
    nodes = cluster.columns.row_of
    for key, value in spec.node_selector:
        yield from of_label("spec.nodeSelector", Requirement(key, "In", (value,)))
    for i, term in enumerate((spec.affinity.required if spec.affinity else None) or ()):
        if not is_well_formed(term):
            continue
        for j, requirement in enumerate(term.labels):
            yield from of_label(f"{_TERMS}[{i}].matchExpressions[{j}]", requirement)
        for j, requirement in enumerate(term.fields):
            if requirement.operator == "In" and nodes.keys().isdisjoint(requirement.values):
                field = f"{_TERMS}[{i}].matchFields[{j}]"
                yield field, requirement, lambda: Counter(nodes.keys()), frozenset
    if spec.gpu and spec.gpu.models:
        models = known_labels.gpu_models(cluster)
        if models.keys().isdisjoint(spec.gpu.models):
            asked = Requirement(names.GPU_MODELS, "In", spec.gpu.models)
            yield "metadata.annotations", asked, lambda: models, frozenset


def _nearest_first(requirement: Requirement, there: Counter[str]) -> Sequence[str]:
    """Return the values to name: near ones, then those of the most nodes."""
    close = [value for asked in requirement.values for value in near(asked, there)]
    common = sorted(there, key=lambda value: (-there[value], value))
    return list(dict.fromkeys((*close, *common)))[:_VALUES]
