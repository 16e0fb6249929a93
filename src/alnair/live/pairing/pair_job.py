"""The Job that runs one workload with a slice of a GPU, for the time of one measurement."""

import msgspec

from alnair.kube.resources import Manifest
from alnair.model import names
from alnair.model.pair_rates import LIMITED, MPS

#: Label of all Jobs and pods of one measurement.
LABEL = "ai.centaurus.io/pair"
#: Of the container.
CONTAINER = "main"
#: Seconds that an ended Job stays, in case nobody removes it.
_KEPT = 60
#: Seconds that a workload has to end.
_GRACE = 1


class JobOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What all Jobs of a measurement have in common.

    Attributes:
        namespace: Where they are made.
        node: On which they run; its name.
        image: Has the workloads' programs.
        scheduler: Gives them slices of the same GPU.
        memory_mib: Of each slice.
        mode: How they share the GPU.
        percent: Of compute, where that is limited.
        deadline: Seconds after which a Job ends, whoever is still there.
    """

    namespace: str
    node: str
    image: str
    memory_mib: int
    mode: str
    percent: tuple[int, int] = (50, 50)
    scheduler: str = names.SCHEDULER
    deadline: int = 600


def pair_job(
    name: str, label: str, words: tuple[str, ...], which: int, options: JobOptions
) -> Manifest:
    """Return a Job's manifest.

    Args:
        name: Of the Job.
        label: Value of `LABEL`.
        words: The program and its arguments.
        which: 0 or 1: whose share of compute.
        options: What all have in common.
    """
    limits = {names.VGPU_MEMORY: str(options.memory_mib)}
    if options.mode == LIMITED:
        limits[names.VGPU_COMPUTE] = str(options.percent[which])
    annotations = {names.VGPU_ISOLATION: "mps"} if options.mode == MPS else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": options.namespace, "labels": {LABEL: label}},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": options.deadline,
            "ttlSecondsAfterFinished": _KEPT,
            "template": {
                "metadata": {"labels": {LABEL: label}, "annotations": annotations},
                "spec": {
                    "restartPolicy": "Never",
                    "schedulerName": options.scheduler,
                    "terminationGracePeriodSeconds": _GRACE,
                    "nodeSelector": {"kubernetes.io/hostname": options.node},
                    "automountServiceAccountToken": False,
                    "containers": [
                        {
                            "name": CONTAINER,
                            "image": options.image,
                            "command": list(words),
                            "env": [{"name": "PYTHONUNBUFFERED", "value": "1"}],
                            "resources": {"limits": limits},
                        }
                    ],
                },
            },
        },
    }
