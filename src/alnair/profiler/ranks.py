"""Which rank of its job a pod is, and in which role, from what its maker wrote on it."""

import re
from collections.abc import Mapping
from typing import Final

#: Labels and annotations with a number, the surest first. Sources: kubernetes.io (indexed Jobs,
#: StatefulSets), Kubeflow's trainers, LeaderWorkerSet, Volcano.
_NUMBERS: Final = (
    "batch.kubernetes.io/job-completion-index",
    "apps.kubernetes.io/pod-index",
    "training.kubeflow.org/replica-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
    "volcano.sh/task-index",
)
#: Environment variables, as torchrun and its like read them.
_VARIABLES: Final = ("RANK", "NODE_RANK", "GROUP_RANK", "JOB_COMPLETION_INDEX")
#: Labels that say what kind of member a pod is: only the same kinds are compared.
_ROLES: Final = (
    "training.kubeflow.org/replica-type",
    "volcano.sh/task-spec",
    "jobset.sigs.k8s.io/replicatedjob-name",
)
_ORDINAL: Final = re.compile(r"-([0-9]{1,6})$")
_MOST: Final = 1_000_000


def rank_of(
    name: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str] = {},
    variables: Mapping[str, str] = {},
) -> int | None:
    """Return a pod's rank; None where nothing tells it.

    Args:
        name: Of the pod; an ordinal at its end is the last thing that counts.
        labels: Of the pod.
        annotations: Of the pod.
        variables: Environment variables with plain values.
    """
    texts = [found.get(key) for key in _NUMBERS for found in (labels, annotations)]
    texts += [variables.get(key) for key in _VARIABLES]
    for text in texts:
        if text and text.isascii() and text.isdigit() and int(text) < _MOST:
            return int(text)
    found = _ORDINAL.search(name)
    return int(found[1]) if found else None


def role_of(labels: Mapping[str, str]) -> str:
    """Return what kind of member of its job a pod is; empty where there is but one."""
    return next((labels[key] for key in _ROLES if key in labels), "")
