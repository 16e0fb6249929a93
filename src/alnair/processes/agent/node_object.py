"""What a node's object says now of its GPUs, and who wrote it.

A label that somebody else wrote is theirs: Kubernetes notes in `managedFields` who wrote each.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from alnair.kube.objects.wire import ObjectMeta
from alnair.model import names, quantity

#: Who writes a node's inventory, in server-side apply.
FIELD_MANAGER: Final = "alnair-agent-inventory"
GPU_COUNT_LABEL: Final = "nvidia.com/gpu.count"
GPU_MEMORY_LABEL: Final = "nvidia.com/gpu.memory"
#: Its parts `major`, `minor` and `revision`, and the whole, `full`.
DRIVER_LABEL: Final = "nvidia.com/cuda.driver-version."
MIG_CAPABLE_LABEL: Final = "nvidia.com/mig.capable"
MIG_STRATEGY_LABEL: Final = "nvidia.com/mig.strategy"
_LABELS: Final = (
    names.GPU_MODEL_LABEL,
    GPU_COUNT_LABEL,
    GPU_MEMORY_LABEL,
    MIG_CAPABLE_LABEL,
    MIG_STRATEGY_LABEL,
    *(DRIVER_LABEL + part for part in ("major", "minor", "revision", "full")),
)


class FieldsOfManager(msgspec.Struct, rename="camel"):
    """The fields of an object that one writer wrote."""

    manager: str = ""
    fields_v1: dict[str, Any] = msgspec.field(name="fieldsV1", default_factory=dict)


class NodeMeta(ObjectMeta):
    """Metadata with who wrote it."""

    managed_fields: list[FieldsOfManager] | None = None


class Amounts(msgspec.Struct):
    """Resources of a node; all its pods may have of them no more than what is allocatable."""

    capacity: dict[str, str | int] | None = None
    allocatable: dict[str, str | int] | None = None


class NodeObject(msgspec.Struct):
    """A node as it comes over the wire: only what is read here."""

    metadata: NodeMeta
    status: Amounts | None = None


class NodeSays(msgspec.Struct, frozen=True):
    """What a node's object says now of what this module is about.

    Attributes:
        labels: Those that may be ours.
        theirs: Keys of the labels among them that somebody else wrote.
        static: The annotation `gpu-static`.
        resources: Capacity and allocatable, as far as they are of slices; None is no number.
    """

    labels: dict[str, str] = {}
    theirs: frozenset[str] = frozenset()
    static: str = ""
    resources: tuple[dict[str, int | None], ...] = ({}, {})


def said(node: NodeObject) -> NodeSays:
    """Return what the object says."""
    meta = node.metadata
    labels = {
        key: text
        for key, text in (meta.labels or {}).items()
        if key in _LABELS or key.startswith(names.MIG_PREFIX)
    }
    ours, others = set[str](), set[str]()
    for writer in meta.managed_fields or ():
        fields = _below(_below(writer.fields_v1, "f:metadata"), "f:labels")
        mine = ours if writer.manager == FIELD_MANAGER else others
        mine.update(key for key in labels if f"f:{key}" in fields)
    status = node.status or Amounts()
    return NodeSays(
        labels=labels,
        # One that nobody is known to have written was there before Kubernetes took notes.
        theirs=frozenset(key for key in labels if key in others or key not in ours),
        static=(meta.annotations or {}).get(names.GPU_STATIC, ""),
        resources=(_slices(status.capacity), _slices(status.allocatable)),
    )


def _slices(amounts: Mapping[str, str | int] | None) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for name in names.SLICE_RESOURCES:
        if amounts and name in amounts:
            try:
                found[name] = quantity.value(amounts[name])
            except quantity.QuantityError:
                found[name] = None
    return found


def _below(fields: Any, key: str) -> dict[str, Any]:
    found = fields.get(key)
    return found if isinstance(found, dict) else {}
