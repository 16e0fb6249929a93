"""What a node's object says now, and who wrote it."""

from typing import Any

import msgspec
import pytest

from alnair.model import names
from alnair.processes.agent.node_object import FIELD_MANAGER, NodeObject, NodeSays, said

PRODUCT, MEMORY = names.GPU_MODEL_LABEL, "nvidia.com/gpu.memory"


def reading(*writers: dict[str, Any], labels: dict[str, str], **status: Any) -> NodeSays:
    metadata = {"name": "n", "labels": labels, "managedFields": list(writers)}
    return said(msgspec.convert({"metadata": metadata, "status": status}, NodeObject))


def writer(manager: str, *labels: str, **more: str) -> dict[str, Any]:
    fields = {"f:metadata": {"f:labels": {f"f:{key}": {} for key in labels}}}
    return {"manager": manager, "operation": "Apply", "fieldsV1": fields, **more}


@pytest.mark.parametrize(
    ("writers", "theirs"),
    [
        ([writer(FIELD_MANAGER, PRODUCT)], set()),
        ([writer("nfd-master", PRODUCT)], {PRODUCT}),
        ([writer(FIELD_MANAGER, PRODUCT), writer("nfd-master", PRODUCT)], {PRODUCT}),
        ([writer(FIELD_MANAGER, PRODUCT), writer("nfd-master", MEMORY)], set()),
        # A kubelet writes labels together with the status.
        ([writer("kubelet", PRODUCT, subresource="status")], {PRODUCT}),
        ([], {PRODUCT}),
        ([{"manager": FIELD_MANAGER}, {"fieldsV1": {"f:metadata": []}}], {PRODUCT}),
    ],
)
def test_a_label_is_ours_if_nobody_else_wrote_it(
    writers: list[dict[str, Any]], theirs: set[str]
) -> None:
    found = reading(*writers, labels={PRODUCT: "H100", "further": "label"})
    assert found.labels == {PRODUCT: "H100"}
    assert found.theirs == theirs


def test_resources_are_read_as_numbers() -> None:
    found = reading(
        labels={},
        capacity={names.VGPU_MEMORY: "142k", "cpu": "8"},
        allocatable={names.VGPU_MEMORY: "many", names.VGPU_COMPUTE: 200},
    )
    assert found.resources == (
        {names.VGPU_MEMORY: 142_000},
        {names.VGPU_MEMORY: None, names.VGPU_COMPUTE: 200},
    )


def test_a_node_that_says_nothing_can_be_read() -> None:
    assert said(msgspec.convert({"metadata": {"name": "n"}}, NodeObject)) == NodeSays()
