"""What a node's object shall say of its GPUs: labels, the document `gpu-static`, resources.

Labels are spelled as by NVIDIA's GPU Feature Discovery (`internal/lm` of k8s-device-plugin), which
may run on the same nodes.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from alnair.model import names
from alnair.model.api_types import GpuStatic, GpuStaticEntry
from alnair.node.inventory import GpuFacts, Inventory
from alnair.processes.agent.node_object import (
    DRIVER_LABEL,
    GPU_COUNT_LABEL,
    GPU_MEMORY_LABEL,
    MIG_CAPABLE_LABEL,
    MIG_STRATEGY_LABEL,
    NodeSays,
)

_PRODUCT: Final = names.GPU_MODEL_LABEL
_LONGEST_LABEL: Final = 63
_HEALTHY: Final[Mapping[str, str]] = {}


def product(model: str) -> str:
    """Return a model's name as the value of a label."""
    dashed = "-".join(
        "".join(c for c in model if c.isascii() and (c.isalnum() or c in "-_. ")).split()
    )
    return dashed[:_LONGEST_LABEL].strip("-_.")


def labels_of(inventory: Inventory, *, serves_mig: bool = False) -> dict[str, str]:
    """Return all the labels that tell of the GPUs; those in MIG mode are not counted.

    Args:
        inventory: The node's GPUs.
        serves_mig: Whether MIG devices are offered here, each profile as a resource.
    """
    found = _mig_labels(inventory, serves_mig=serves_mig)
    version = inventory.driver.split(".")
    if inventory.driver and product(inventory.driver) == inventory.driver:
        found[DRIVER_LABEL + "full"] = inventory.driver
        found |= {
            DRIVER_LABEL + part: text
            for part, text in zip(("major", "minor", "revision"), version, strict=False)
        }
    if gpus := inventory.sliceable:
        model = _most_common(gpus)
        mib = next(gpu.memory_mib for gpu in gpus if gpu.model == model)
        found[names.GPU_MODEL_LABEL] = product(model)
        found[GPU_COUNT_LABEL] = str(len(gpus))
        found[GPU_MEMORY_LABEL] = str(mib)
    return {key: text for key, text in found.items() if text}


def _mig_labels(inventory: Inventory, *, serves_mig: bool) -> dict[str, str]:
    if not inventory.gpus:
        return {}
    is_capable = any(gpu.mig_capable for gpu in inventory.gpus)
    found = {MIG_CAPABLE_LABEL: str(is_capable).lower()}
    if not serves_mig or not is_capable:
        return found
    found[MIG_STRATEGY_LABEL] = "mixed"
    counts = Counter(one.resource for _, one in inventory.mig_devices.values())
    for gpu, one in inventory.mig_devices.values():
        profile = one.resource.removeprefix(names.MIG_PREFIX)
        found[f"{one.resource}.count"] = str(counts[one.resource])
        found[f"{one.resource}.product"] = product(f"{gpu.model}-MIG-{profile}")
        found[f"{one.resource}.memory"] = str(one.memory_mib)
    return found


def static_of(
    inventory: Inventory, says: NodeSays, problems: Mapping[str, str] = _HEALTHY
) -> list[GpuStaticEntry]:
    """Return the GPUs of `gpu-static`: all but those in MIG mode.

    Their model is spelled as in the node's label, so that whoever asks for a model need not know
    who wrote the label.

    Args:
        inventory: The node's GPUs.
        says: The node's object, with labels of others.
        problems: Why nothing may start on a GPU, by UUID.
    """
    gpus = inventory.sliceable
    if not gpus:
        return []
    label = says.labels[_PRODUCT] if _PRODUCT in says.theirs else ""
    spelling = {gpu.model: product(gpu.model) or "unknown" for gpu in gpus}
    if label:
        # With several models the label is of one of them: which, its beginning tells.
        meant = [model for model in spelling if f"{label}-".startswith(f"{product(model)}-")]
        if meant or len(spelling) == 1:
            spelling[max(meant, key=len) if meant else gpus[0].model] = label
    return [
        GpuStaticEntry(
            uuid=gpu.uuid,
            index=gpu.index,
            model=spelling[gpu.model],
            memory_mib=gpu.memory_mib,
            numa=gpu.numa,
            links={
                str(other.index): gpu.links[other.index]
                for other in gpus
                if other.index in gpu.links
            },
            problem=problems.get(gpu.uuid) or msgspec.UNSET,
        )
        for gpu in gpus
    ]


def is_said(gpus: list[GpuStaticEntry], text: str) -> bool:
    """Return whether the annotation `gpu-static` says just this, whenever it was written."""
    try:
        found = msgspec.json.decode(text, type=GpuStatic)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return found.v == 1 and found.gpus == gpus


def resources_of(
    inventory: Inventory, problems: Mapping[str, str] = _HEALTHY, soft_factor: float = 1.0
) -> dict[str, int]:
    """Return what the node has for slices, on GPUs on which something may start.

    Args:
        inventory: Its GPUs.
        problems: Why nothing may start on a GPU, by UUID.
        soft_factor: How far soft shares may be promised beyond a GPU's time.
    """
    gpus = [gpu for gpu in inventory.sliceable if not problems.get(gpu.uuid)]
    return {
        names.VGPU_MEMORY: sum(gpu.memory_mib for gpu in gpus),
        names.VGPU_COMPUTE: int(100 * len(gpus) * soft_factor),
    }


def _most_common(gpus: tuple[GpuFacts, ...]) -> str:
    """The model that most of them are; of several that with the first GPU."""
    return Counter(gpu.model for gpu in gpus).most_common(1)[0][0]
