"""The peers of a pod: what its Services and its controller select.

Default spread constraints take their selector from here. Source: `DefaultSelector` in
`pkg/scheduler/framework/plugins/helper` of Kubernetes.
"""

from typing import Final

from alnair.model.workload import LabelSelector, PodSpec, Requirement
from alnair.scheduler.state.objects.api_objects import Objects
from alnair.scheduler.state.pods.label_selectors import matches

#: Controllers that count.
CONTROLLERS: Final = ("ReplicaSet", "ReplicationController", "StatefulSet")
#: Kinds of objects that are read here; the value of each is its selector.
KINDS: Final = ("Service", *CONTROLLERS)


def peers(spec: PodSpec, objects: Objects) -> LabelSelector:
    """Return what all of the pod's Services and its controller ask of labels.

    Without any of them it has no requirements, which here means that the pod has no peers.
    """
    labels = dict(spec.labels)
    requirements: dict[Requirement, None] = {}
    for (namespace, _), selector in objects.of("Service").items():
        if namespace == spec.namespace and matches(selector, labels):
            requirements.update(dict.fromkeys(selector.requirements))
    if spec.controller:
        kind, name = spec.controller
        selector = objects.of(kind).get((spec.namespace, name))
        if kind in CONTROLLERS and selector is not None:
            requirements.update(dict.fromkeys(selector.requirements))
    return LabelSelector(tuple(requirements))
