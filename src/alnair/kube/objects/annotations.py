"""The annotations that the scheduler writes, as compact JSON."""

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from alnair.model import api_types
from alnair.model.workload import Planned, PodGpuAssignment


def gpu_assignment(assignment: PodGpuAssignment, now: float) -> str:
    """Return the `gpu-assignment` document; `now` is in seconds since the epoch."""
    containers = {
        name: [
            api_types.AssignedGpu(s.uuid, s.index, s.memory_mib, s.compute, s.whole) for s in shares
        ]
        for name, shares in assignment
    }
    return msgspec.json.encode(api_types.GpuAssignment(1, rfc3339(now), containers)).decode()


def gang_plan(plan: Mapping[str, Planned], now: float) -> str:
    """Return the `gang-plan` document; `now` is in seconds since the epoch."""
    pods = {name: api_types.PlannedPod(node, gpus) for name, (node, gpus) in plan.items()}
    return msgspec.json.encode(api_types.GangPlan(1, rfc3339(now), pods)).decode()


def rfc3339(now: float) -> str:
    """Return the time as Kubernetes writes it."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
