"""Random pods on a real node, whose processes are ended in between: each has what it is due.

`ALNAIR_NODE_CHURN_PODS=200` makes it as many; `ALNAIR_NODE_CHURN_SEED` chooses what happens.
"""

import json
import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import NAMESPACES
from alnair.local.components.components import ALNAIR_SCHEDULER
from alnair.local.controlplane import LocalCluster
from alnair.local.layout import Layout
from alnair.local.real_node import requirements
from alnair.local.real_node.choice import RealNodeWish
from kit.live.churn import Checker
from kit.live.scheduler_process import SHORT_LEASE
from kit.live.shared_clusters import discard
from kit.real_node.gpu_books import GpuBooks
from kit.real_node.inventory import described
from kit.real_node.node_churn import NodeChurn

PODS = int(os.environ.get("ALNAIR_NODE_CHURN_PODS", "24"))
SEED = int(os.environ.get("ALNAIR_NODE_CHURN_SEED", "1"))
WISH = RealNodeWish(wanted=True, gpus=8, gpu_model="t4")
NAMESPACE = "churn"


@pytest.fixture
async def cluster(cluster_root: Path) -> AsyncIterator[LocalCluster]:
    """A cluster with a real node and our scheduler."""
    reason = requirements.refusal(Layout(cluster_root, "churn"), os.environ)
    if reason is not None:
        pytest.skip(f"no real node can run here: {reason}")
    name = f"churn-{uuid.uuid4().hex[:8]}"
    made = LocalCluster(
        name,
        real_node=WISH,
        scheduler=True,
        extra_args={ALNAIR_SCHEDULER: SHORT_LEASE},
        root=cluster_root,
    )
    try:
        await made.up()
        yield made
    finally:
        await discard(made)


@pytest.mark.timeout(240 + 6 * PODS)
async def test_every_container_has_just_what_it_is_due_whatever_is_restarted(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    async with Client(client_config.load(cluster.kubeconfig())) as client:
        await described(client)
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        checker = Checker(cluster, tmp_path, gang_grace=5.0)
        try:
            with GpuBooks(cluster.layout.folder) as books:
                churn = NodeChurn(cluster, client, NAMESPACE, SEED, books)
                await churn.run(PODS)
            found = checker.result()
        finally:
            checker.close()
    figures = {
        **churn.done,
        "judged": churn.judge.judged,
        "longest": {what: round(seconds, 1) for what, seconds in churn.longest.items()},
        "faults": len(churn.judge.faults),
        "violations": len(found["violations"]),
        "agent away at most": round(churn.outages.longest("agent"), 1),
    }
    print("churn:", json.dumps(figures))
    for name, (seconds, events) in churn.slow.items():
        told = (
            f"{one.get('firstTimestamp')} {one['reason']} x{one.get('count')}: {one['message']}"
            for one in events
        )
        print(f"{name} started {seconds:.0f} s after it was bound:", *told, sep="\n    ")
    print(*(f"{what}: {text}" for what, text in churn.judge.faults.items()), sep="\n")
    assert churn.judge.faults == {}
    assert found["violations"] == []
    assert all(churn.judge.judged.values())
