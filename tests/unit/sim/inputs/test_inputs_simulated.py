"""Scenarios of every format run to their end in the simulator: nothing is missing in them."""

from pathlib import Path

import pytest

from alnair.history.history import History
from alnair.model import names
from alnair.scheduler.profiles import profiles
from alnair.sim.inputs import InputOptions, Mix, load
from alnair.sim.simulation import Simulation

EXPECTED = f"""{names.EXPECTED}: '{{"v": 1, "t": "", "duration_s": 600}}'"""
MANIFESTS = f"""
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {{name: gang, namespace: team}}
spec: {{minMember: 3}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: gang, namespace: team, annotations: {{{EXPECTED}}}}}
spec:
  parallelism: 3
  template:
    metadata: {{labels: {{{names.POD_GROUP_LABEL}: gang}}}}
    spec:
      schedulerName: alnair-scheduler
      containers: [{{name: main, resources: {{limits: {{nvidia.com/gpu: 8}}}}}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent}}
spec: {{template: {{spec: {{schedulerName: alnair-scheduler, containers: [{{name: main}}]}}}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, annotations: {{{EXPECTED}}}}}
spec: {{replicas: 5, template: {{spec: {{containers: [{{name: main}}]}}}}}}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: ElasticQuota
metadata: {{name: quota, namespace: team}}
spec: {{max: {{nvidia.com/gpu: 64}}}}
"""


def simulated(source: str | Path, options: InputOptions) -> History:
    scenario = load([source], options).scenario
    return Simulation(scenario, profiles()).run()


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("openb", InputOptions(limit=60)),
        ("openb", InputOptions(limit=60, shares="memory", utilisation="measured")),
        ("philly", InputOptions(limit=60, node_mtbf=1e6)),
        ("gaia", InputOptions(limit=20)),
        ("synthetic", InputOptions(nodes="3x8xT4", mix=Mix(jobs=60))),
    ],
)
def test_all_jobs_of_a_trace_finish(source: str, options: InputOptions) -> None:
    history = simulated(source, options)
    assert len(history.jobs) == (options.limit or options.mix.jobs)
    assert all(job.finished is not None for job in history.jobs.values())


def test_pods_of_manifests_run_where_they_must(tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(MANIFESTS)
    history = simulated(path, InputOptions(nodes="4x8xT4"))
    agents = [history.pods[uid] for uid in history.jobs["default/DaemonSet/agent"].pods]
    assert [(pod.uid.removeprefix("default/agent-"), pod.stays[0].node) for pod in agents] == [
        (f"t4x8-000{i}", f"t4x8-000{i}") for i in range(4)
    ]
    gang = history.jobs["team/PodGroup/gang"]
    assert len({history.pods[uid].stays[0].begin for uid in gang.pods}) == 1
    assert gang.finished == 600.0
    assert history.jobs["default/Deployment/web"].finished == 600.0
    assert history.jobs["default/DaemonSet/agent"].finished is None
