"""What agents wrote about a node is told from what others wrote."""

from typing import Any

from alnair.processes.agent.forgetting import knows, written


def node(**parts: Any) -> dict[str, Any]:
    """A node; `ours` are keys that the agent applied, by part."""
    ours = parts.pop("ours", {})
    fields = {f"f:{part}": {f"f:{key}": {} for key in keys} for part, keys in ours.items()}
    managed = [
        {"manager": "kubelet", "fieldsV1": {"f:metadata": {"f:labels": {"f:zone": {}}}}},
        {"manager": "alnair-agent-inventory", "fieldsV1": {"f:metadata": fields}},
    ]
    capacity = parts.pop("capacity", {})
    metadata = {"name": "n", "managedFields": managed, **parts}
    return {"metadata": metadata, "status": {"capacity": capacity}}


def test_labels_that_the_agent_applied_are_its_own_and_others_stay() -> None:
    found = node(
        labels={
            "nvidia.com/gpu.product": "T4",
            "nvidia.com/gpu.count": "4",
            "zone": "a",
            "ai.centaurus.io/vgpu-tier": "B-B",
            "ai.centaurus.io/real-node": "true",
        },
        ours={"labels": ["nvidia.com/gpu.product", "gone-since"]},
    )
    assert written(found, "labels") == ["ai.centaurus.io/vgpu-tier", "nvidia.com/gpu.product"]
    assert knows(found)


def test_annotations_of_loads_are_known_by_their_number() -> None:
    names = ("gpu-0", "gpu-11", "gpu-static", "gpu-models", "vgpu-promise")
    found = node(annotations={f"ai.centaurus.io/{name}": "" for name in names})
    assert written(found, "annotations") == [
        f"ai.centaurus.io/{name}" for name in ("gpu-0", "gpu-11", "gpu-static", "vgpu-promise")
    ]


def test_a_node_of_which_only_amounts_are_left_is_known() -> None:
    assert knows(node(capacity={"alnair/vgpu-memory": "100"}))
    assert not knows(node(capacity={"cpu": "2", "nvidia.com/gpu": "8"}, labels={"zone": "a"}))
