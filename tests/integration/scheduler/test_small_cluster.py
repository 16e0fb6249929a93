"""Pods that name only GPUs, on a real API server: each profile does what its name says."""

from collections import Counter

import pytest

from alnair.kube.client import Client
from alnair.kube.resources import PODS
from alnair.model import names
from kit.live.scheduler_process import StartScheduler, bound, eventually, pod

#: Nodes of the cluster, with four GPUs each (`conftest`).
NODE_COUNT = 6
#: Half of a T4's memory, in MiB.
HALF = "7680"


async def place(admin: Client, namespace: str, profile: str, limits: list[dict[str, str]]) -> None:
    """Create pods that name only GPUs, each after the one before is placed."""
    for number, asked in enumerate(limits):
        main = {"name": "main", "image": "pause", "resources": {"limits": asked}}
        await admin.create(
            PODS, pod(namespace, f"pod-{number}", scheduler=profile, containers=[main])
        )

        async def placed(count: int = number + 1) -> bool:
            return len(await bound(admin, namespace)) == count

        await eventually(placed, what=f"pod {number} is placed")


@pytest.mark.parametrize("profile", [names.SCHEDULER, names.COST_SAVING, names.LOW_FRAGMENTATION])
async def test_packing_profiles_leave_no_gpu_free_on_nodes_in_use(
    admin: Client, namespace: str, start_scheduler: StartScheduler, profile: str
) -> None:
    start_scheduler()
    await place(admin, namespace, profile, [{names.GPU: str(n)} for n in (2, 3, 1, 2, 3, 1)])
    assert len(set((await bound(admin, namespace)).values())) == 3
    await admin.delete_collection(PODS, namespace, grace_seconds=0)

    async def gone() -> bool:
        return not (await admin.list(PODS, namespace)).items

    await eventually(gone)
    await place(admin, namespace, profile, [{names.VGPU_MEMORY: HALF}] * 6 + [{names.GPU: "1"}])
    assert len(set((await bound(admin, namespace)).values())) == 1


@pytest.mark.parametrize("limit", [{names.GPU: "1"}, {names.VGPU_MEMORY: HALF}])
async def test_high_performance_spreads_over_nodes(
    admin: Client, namespace: str, start_scheduler: StartScheduler, limit: dict[str, str]
) -> None:
    start_scheduler()
    await place(admin, namespace, names.HIGH_PERFORMANCE, [limit] * (NODE_COUNT + 2))
    nodes = Counter((await bound(admin, namespace)).values())
    assert sorted(nodes.values()) == [1, 1, 1, 1, 2, 2]
