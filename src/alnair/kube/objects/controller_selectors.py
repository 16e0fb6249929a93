"""Services and controllers of pods, reduced to what they select."""

from msgspec import Struct

from alnair.kube.objects.selectors_and_affinity import label_selector
from alnair.kube.objects.wire import LabelSelectorWire, ObjectMeta
from alnair.model.workload import LabelSelector


class MapSelectorSpec(Struct):
    """Specification of a Service or ReplicationController."""

    selector: dict[str, str] | None = None


class MapSelecting(Struct):
    """A Service or ReplicationController."""

    metadata: ObjectMeta
    spec: MapSelectorSpec | None = None


class SelectorSpec(Struct):
    """Specification of a ReplicaSet or StatefulSet."""

    selector: LabelSelectorWire | None = None


class Selecting(Struct):
    """A ReplicaSet or StatefulSet."""

    metadata: ObjectMeta
    spec: SelectorSpec | None = None


def project_map_selecting(selecting: MapSelecting) -> LabelSelector | None:
    """Return what it selects; None is nothing at all."""
    selector = selecting.spec.selector if selecting.spec else None
    return None if selector is None else label_selector(LabelSelectorWire(match_labels=selector))


def project_selecting(selecting: Selecting) -> LabelSelector | None:
    """Return what it selects; None is nothing at all."""
    return label_selector(selecting.spec.selector if selecting.spec else None)
