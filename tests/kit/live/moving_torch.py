"""A PyTorch training of one worker, run by torchrun, that begins on a node and is then moved."""

from pathlib import Path
from typing import Final

from alnair.kube.client import Client
from alnair.kube.resources import ELASTIC_TORCH_JOBS, PODS
from kit.live.paced_training import EVERY, PacedTraining
from kit.live.real_pods import NAMESPACE, until

NAME: Final = "by-torchrun"
#: Where it is moved, in the middle between two checkpoints, and its last step.
MOVED: Final = EVERY + EVERY // 2
STEPS: Final = 2 * EVERY
_PATIENCE: Final = 300


class MovingTorch:
    """The training.

    Args:
        client: Of an administrator.
        folder: Of this machine, for its files.
    """

    def __init__(self, client: Client, folder: Path) -> None:
        folder.mkdir()
        self._client = client
        self._training = PacedTraining(folder, STEPS)

    async def begins(self, node: str) -> None:
        """Have it made, on a node if it has room."""
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        term = {"weight": 100, "preference": {"matchExpressions": [here]}}
        prefers = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
        workers = {"minReplicas": 1, "maxReplicas": 1, "affinity": {"nodeAffinity": prefers}}
        self._training.allow(MOVED)
        manifest = self._training.elastic(NAME, workers)
        await self._client.create(ELASTIC_TORCH_JOBS, manifest, NAMESPACE)

    async def trains_up_to_its_move(self) -> None:
        """Wait until it has done all steps that it may before it is moved."""
        await until(lambda: self._has_done(MOVED), f"{NAME} has done step {MOVED}", _PATIENCE)

    async def node(self) -> str:
        """The node of its worker."""
        label = f"ElasticTorchJob={NAME}"
        (worker,) = (
            one
            for one in (await self._client.list(PODS, NAMESPACE, label_selector=label)).items
            if "deletionTimestamp" not in one["metadata"]
        )
        return str(worker["spec"]["nodeName"])

    async def ends_with_no_step_lost_but_those_since_its_checkpoint(self) -> None:
        """Let it train to its end elsewhere."""
        self._training.allow(STEPS)
        await until(lambda: self._has_done(STEPS), f"{NAME} has done step {STEPS}", _PATIENCE)
        done = [step for step, _ in self._training.done()]
        assert done == [*range(1, MOVED + 1), *range(EVERY + 1, STEPS + 1)]

    async def _has_done(self, step: int) -> bool:
        done = self._training.done()
        return bool(done) and done[-1][0] == step
