"""kube-scheduler as its users configure it for GPUs: a file with two profiles."""

from pathlib import Path
from typing import Any, Final

from alnair.model import names

#: How much each resource counts for `NodeResourcesFit`: the GPUs most, as in guides of clouds.
RESOURCES: Final = {names.GPU: 5, "cpu": 1, "memory": 1}
#: Names of the profiles, and how they score.
MOST: Final = "kube-most-allocated"
LEAST: Final = "kube-least-allocated"
STRATEGIES: Final = {MOST: "MostAllocated", LEAST: "LeastAllocated"}


def configuration(kubeconfig: Path) -> dict[str, Any]:
    """Return the KubeSchedulerConfiguration; all that it does not name is as by default.

    All nodes are scored, which is its best setting here: by default it looks at a part of them
    only where there are more than 100.
    """
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 5000},
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": 100,
        "profiles": [_profile(name, strategy) for name, strategy in STRATEGIES.items()],
    }


def _profile(name: str, strategy: str) -> dict[str, Any]:
    resources = [{"name": resource, "weight": weight} for resource, weight in RESOURCES.items()]
    arguments = {"scoringStrategy": {"type": strategy, "resources": resources}}
    return {
        "schedulerName": name,
        "pluginConfig": [{"name": "NodeResourcesFit", "args": arguments}],
    }
