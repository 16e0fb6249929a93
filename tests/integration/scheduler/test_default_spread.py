"""Pods of a controller spread over nodes, where the profile wishes it for pods that say nothing."""

from pathlib import Path
from typing import Any

from alnair.kube.client import Client
from alnair.kube.resources import DEPLOYMENTS, PODS
from kit.live.scheduler_process import StartScheduler, bound, eventually, pod

SCHEDULER = "alnair-spreading"
CONFIG = f"""
apiVersion: scheduler.alnair.io/v1alpha1
kind: SchedulerConfiguration
profiles:
  - schedulerName: {SCHEDULER}
    like: alnair-cost-saving
    pluginConfig:
      - name: PodTopologySpread
        args: {{defaultingType: System}}
"""


def deployment(namespace: str, replicas: int) -> dict[str, Any]:
    labels = {"app": "web"}
    template = pod(namespace, "web", scheduler=SCHEDULER)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }


async def test_replicas_go_to_different_nodes_and_lone_pods_are_packed(
    admin: Client, namespace: str, start_scheduler: StartScheduler, tmp_path: Path
) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIG)
    start_scheduler(f"--config={config}")
    for number in range(4):
        await admin.create(PODS, pod(namespace, f"lone-{number}", scheduler=SCHEDULER))

    async def are_bound(count: int) -> bool:
        return len(await bound(admin, namespace)) == count

    await eventually(lambda: are_bound(4), what="lone pods are bound")
    assert len(set((await bound(admin, namespace)).values())) == 1
    # Of one pod first: by its end the scheduler has heard of what made it, by another watch.
    await admin.create(DEPLOYMENTS, deployment(namespace, 1))
    await eventually(lambda: are_bound(5), what="the first replica is bound")
    more = {"spec": {"replicas": 4}}
    await admin.merge_patch(DEPLOYMENTS, "web", more, namespace)
    await eventually(lambda: are_bound(8), what="replicas are bound")
    nodes = [node for name, node in (await bound(admin, namespace)).items() if "web" in name]
    await admin.delete(DEPLOYMENTS, "web", namespace, propagation="Foreground")
    assert len(set(nodes)) == 4
