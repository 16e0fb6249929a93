"""Workers of torchrun that were lost by no fault of theirs come back as soon as after one loss.

The Job of the workers makes a pod anew 10 s after it failed, and waits twice as long each time, up
to 10 minutes; what its failure policy ignores (evictions, preemption, lost nodes) it counts there,
too (`getRemainingTimePerIndex` of Kubernetes' Job controller). It keeps the count on the failed pod
until the next one is made, and so is made to forget it there. Failures of the training still count.
"""

import contextlib
from collections.abc import Iterable

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.resources import PODS
from alnair.processes.controller.elastic.children import LOSSES


async def forget_losses(client: Client, namespace: str, pods: Iterable[str]) -> int:
    """Have the Job forget how often these failed pods' places lost one before.

    Returns:
        How many were changed.

    Raises:
        KubeError: The API server refuses it; all of it can be tried again.
    """
    changed = 0
    for pod in pods:
        with contextlib.suppress(NotFound):
            patch = {"metadata": {"annotations": {LOSSES: "0"}}}
            await client.merge_patch(PODS, pod, patch, namespace)
            changed += 1
    return changed
