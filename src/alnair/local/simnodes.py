"""Simulated GPU nodes: Node objects as a kubelet and our agent would publish them, kept by kwok.

They are Ready from the start and stay so without heartbeats (see the controller manager's flags),
and kwok plays the kubelet for the pods bound to them.
"""

import asyncio
import contextlib
import datetime as dt
import uuid
from collections.abc import Sequence

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import AlreadyExists
from alnair.kube.resources import LEASES, NODES, Manifest
from alnair.local.errors import LocalClusterError
from alnair.local.report import Report
from alnair.model import names
from alnair.model.api import GpuStatic, GpuStaticEntry
from alnair.model.gpus import MODELS, GpuModel
from alnair.model.openb import TraceNode
from alnair.model.quantity import nanos

#: kwok's mark of the nodes that it keeps.
FAKE = "kwok.x-k8s.io/node"
#: The freshness lease that all simulated nodes share. No agent renews it: it holds for the life of
#: the cluster.
LEASE = "alnair-agent-simulated"
_LEASE_SECONDS = 365 * 24 * 3600
_IN_FLIGHT = 32
_PODS = "110"
_DISK = "1Ti"
_MIB = 1 << 20
#: Names the GPUs of simulated nodes: the same node has the same GPUs in every cluster.
_UUIDS = uuid.UUID("6f1c1d0e-4a63-5b52-9f0b-0d6ad1b0a5f1")


class _Metadata(msgspec.Struct):
    name: str
    annotations: dict[str, str] = {}


class _Status(msgspec.Struct):
    capacity: dict[str, str] = {}


class _Present(msgspec.Struct):
    """What is read of a node that is there."""

    metadata: _Metadata
    status: _Status


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
        found |= {
            names.GPU: str(node.gpus),
            names.VGPU: str(names.VGPU_SLOTS * node.gpus),
            names.VGPU_MEMORY: str(MODELS[node.model].memory_mib * node.gpus),
            names.VGPU_COMPUTE: str(100 * node.gpus),
        }
    return found


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


async def ensure(
    client: Client, nodes: Sequence[TraceNode], now: dt.datetime, report: Report
) -> int:
    """Has these nodes in the cluster; others stay as they are.

    Returns:
        How many were made.

    Raises:
        LocalClusterError: A node of the same name is there and is another one.
    """
    written = now.astimezone(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    await _renew_lease(client, written)
    present = {
        node.metadata.name: node for node in (await client.list(NODES.typed(_Present))).items
    }
    missing = []
    for node in nodes:
        if node.name not in present:
            missing.append(node)
        elif not _is_same(present[node.name], node):
            raise LocalClusterError(
                f"node {node.name} is there already with other resources: delete it"
                f" (kubectl delete node {node.name}), or use another cluster (--name)"
            )
    queue = iter(missing)
    resource = NODES.typed(_Present)
    what, done = f"creating {len(missing)} nodes", 0

    async def work() -> None:
        nonlocal done
        for node in queue:
            # It is there when a request was repeated whose answer had been lost.
            with contextlib.suppress(AlreadyExists):
                await client.create(resource, manifest(node, written))
            done += 1
            report.progress(what, done, len(missing))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(_IN_FLIGHT, len(missing))):
            tasks.create_task(work())
    return len(missing)


def _is_same(present: _Present, node: TraceNode) -> bool:
    # By amount and not by text: the server writes 1000Mi as 1048576k.
    found = present.status.capacity
    return present.metadata.annotations.get(FAKE) == "fake" and all(
        name in found and nanos(found[name]) == nanos(text) for name, text in capacity(node).items()
    )


async def _renew_lease(client: Client, now: str) -> None:
    micro = now.replace("Z", ".000000Z")
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": LEASE, "namespace": names.NAMESPACE},
        "spec": {
            "holderIdentity": "alnair-up",
            "leaseDurationSeconds": _LEASE_SECONDS,
            "renewTime": micro,
        },
    }
    await client.apply(LEASES, lease, field_manager=names.FIELD_MANAGER)
