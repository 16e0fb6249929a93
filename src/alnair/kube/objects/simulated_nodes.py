"""Node objects of simulated GPU nodes, as a kubelet and our agent would publish them."""

import uuid
from typing import Final

import msgspec

from alnair.kube.resources import Manifest
from alnair.model import names
from alnair.model.api_types import GpuStatic, GpuStaticEntry
from alnair.model.gpu_models import MODELS, GpuModel
from alnair.traces.openb import TraceNode

#: kwok's mark of the nodes that it keeps.
FAKE: Final = "kwok.x-k8s.io/node"
_PODS = "110"
_DISK = "1Ti"
_MIB = 1 << 20
#: Names the GPUs of simulated nodes: the same node has the same GPUs in every cluster.
_UUIDS = uuid.UUID("6f1c1d0e-4a63-5b52-9f0b-0d6ad1b0a5f1")


def gpu_uuid(node: str, index: int) -> str:
    """The UUID of a simulated GPU, as NVML writes it."""
    return f"GPU-{uuid.uuid5(_UUIDS, f'{node}/{index}')}"


def gpus(node: TraceNode) -> list[GpuStaticEntry]:
    """The GPUs of a node: the first half on NUMA node 0, the rest on 1."""
    if not node.gpus:
        return []
    model = MODELS[node.model]
    numa = [0 if index < (node.gpus + 1) // 2 else 1 for index in range(node.gpus)]
    return [
        GpuStaticEntry(
            uuid=gpu_uuid(node.name, index),
            index=index,
            model=model.name,
            memory_mib=model.memory_mib,
            numa=numa[index],
            links={
                str(other): _link(model, same_numa=numa[index] == numa[other])
                for other in range(node.gpus)
                if other != index
            },
        )
        for index in range(node.gpus)
    ]


def _link(model: GpuModel, *, same_numa: bool) -> str:
    """The kind of a link, in the words of `nvidia-smi topo`."""
    if model.nvlinks:
        return f"NV{model.nvlinks}"
    return "NODE" if same_numa else "SYS"


def capacity(node: TraceNode) -> dict[str, str]:
    """The resources of a node; memory in bytes."""
    found = {
        "cpu": _cpu(node.cpu_milli),
        "memory": str(node.memory_mib * _MIB),
        "ephemeral-storage": _DISK,
        "pods": _PODS,
    }
    if node.gpus:
        found |= gpu_capacity(node.gpus, MODELS[node.model].memory_mib)
    return found


def gpu_capacity(gpus: int, memory_mib: int) -> dict[str, str]:
    """The resources of so many GPUs of one model, as our device plugin publishes them."""
    return {
        names.GPU: str(gpus),
        names.VGPU: str(names.VGPU_SLOTS * gpus),
        names.VGPU_MEMORY: str(memory_mib * gpus),
        names.VGPU_COMPUTE: str(100 * gpus),
    }


def _cpu(milli: int) -> str:
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def manifest(node: TraceNode, now: str) -> Manifest:
    """The Node object.

    Args:
        node: What to simulate.
        now: The present, RFC 3339.
    """
    labels = {
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        # As every kubelet sets them; otherwise the controller manager adds them, node by node.
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
    }
    annotations = {FAKE: "fake"}
    if node.gpus:
        labels[names.GPU_MODEL_LABEL] = node.model
        static = GpuStatic(v=1, t=now, gpus=gpus(node))
        annotations[names.GPU_STATIC] = msgspec.json.encode(static).decode()
    resources = capacity(node)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": labels, "annotations": annotations},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "addresses": [{"type": "Hostname", "address": node.name}],
            "conditions": [
                {
                    "type": kind,
                    "status": status,
                    "reason": reason,
                    "message": "simulated by alnair up",
                    "lastHeartbeatTime": now,
                    "lastTransitionTime": now,
                }
                for kind, status, reason in (
                    ("Ready", "True", "KubeletReady"),
                    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                    ("PIDPressure", "False", "KubeletHasSufficientPID"),
                )
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "kubeletVersion": "simulated",
                "kubeProxyVersion": "",
                "containerRuntimeVersion": "kwok",
                "osImage": "",
                "kernelVersion": "",
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
            },
        },
    }
