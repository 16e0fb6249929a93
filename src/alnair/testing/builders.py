"""Nodes and pods as the scheduler sees them, made from what one would write in a manifest."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from alnair.kube.objects import wire
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.objects.simulated_nodes import gpu_capacity
from alnair.model import names
from alnair.model.gpu_models import MODELS
from alnair.model.nodes import Node
from alnair.model.workload import Pod


def node(
    name: str,
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    gpus: int = 0,
    gpu_model: str = "A100",
    gpu_memory_mib: int | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    unschedulable: bool = False,
    allocatable: Mapping[str, str] | None = None,
) -> Node:
    """Return a node; `allocatable` adds further resources, and taints are as in a manifest.

    Its GPUs have the memory of their model (`alnair.model.gpu_models`), or `gpu_memory_mib`, which
    a model must have that is not in that table.

    Raises:
        ValueError: the memory of a GPU is not known, or the node cannot be read.
    """
    resources = {"cpu": cpu, "memory": memory, "pods": "110", **(allocatable or {})}
    annotations = {}
    if gpus:
        if gpu_memory_mib is None and gpu_model not in MODELS:
            raise ValueError(f"node {name}: give gpu_memory_mib, {gpu_model} is no known model")
        if gpu_memory_mib is None:
            gpu_memory_mib = MODELS[gpu_model].memory_mib
        resources |= gpu_capacity(gpus, gpu_memory_mib)
        described = [
            {
                "uuid": f"GPU-{name}-{index}",
                "index": index,
                "model": gpu_model,
                "memory_mib": gpu_memory_mib,
            }
            for index in range(gpus)
        ]
        document = {"v": 1, "t": "2026-01-01T00:00:00Z", "gpus": described}
        annotations[names.GPU_STATIC] = json.dumps(document)
    manifest = {
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            "annotations": annotations,
        },
        "spec": {"taints": list(taints), "unschedulable": unschedulable},
        "status": {"allocatable": resources},
    }
    made = project_node(msgspec.convert(manifest, wire.NodeWire, strict=False))
    if made.problem:
        raise ValueError(f"node {name}: {made.problem}")
    return made


def pod(
    name: str,
    *,
    node: str = "",
    namespace: str = "default",
    requests: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Pod:
    """Return a pod with one container; `node` is where it is, and `spec` further fields of it.

    Further fields are in the spelling of manifests: `nodeSelector={"zone": "a"}`.
    """
    resources = {"requests": dict(requests or {"cpu": "100m"}), "limits": dict(limits or {})}
    manifest = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{namespace}/{name}",
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "containers": [{"name": "main", "image": "image", "resources": resources}],
            **({"nodeName": node} if node else {}),
            **spec,
        },
    }
    made = PodProjector()(msgspec.convert(manifest, wire.PodWire, strict=False))
    if made.problem:
        raise ValueError(f"pod {name}: {made.problem}")
    return made
