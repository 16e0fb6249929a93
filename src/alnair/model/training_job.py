"""A training job of any kind, read: what decisions about it go by."""

from typing import Final, Literal

import msgspec

from alnair.model.elastic_types import (
    ElasticPolicy,
    GpuWorkers,
    JobStatus,
    LauncherSpec,
    RunPolicy,
)

Framework = Literal["horovod", "torch"]

#: Types of conditions, and phases; a phase is the last of these whose condition is true.
CREATED: Final = "Created"
SCHEDULED: Final = "Scheduled"
RUNNING: Final = "Running"
SCALING: Final = "Scaling"
SUSPENDED: Final = "Suspended"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
#: Reason of `Running`: some workers have ended well, so that fewer are ready than there were.
WORKERS_ENDED: Final = "WorkersEnded"
CONDITIONS: Final = (CREATED, SCHEDULED, RUNNING, SCALING, SUSPENDED, SUCCEEDED, FAILED)


class TrainingJob(msgspec.Struct, frozen=True, kw_only=True):
    """An ElasticHorovodJob, HorovodJob or ElasticTorchJob.

    Attributes:
        kind: One of these.
        version: resourceVersion of the object.
        generation: Of its spec.
        created: Seconds since the epoch.
        framework: What runs in its pods.
        least, most: Workers.
        wish: Most workers that are wanted for now; never more than `most`.
        slots: Processes of each worker.
        gpus: Whole GPUs of each worker; 0 with a slice.
        max_restarts: Of torchrun.
        in_gang: The launcher is placed with the workers.
        elastic: None if the number of workers is fixed.
        isolated: Nobody else may connect to its pods.
        deleting: It is being deleted.
        leave: What its annotation `leave-nodes` says.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    version: str = ""
    generation: int = 0
    created: float = 0.0
    framework: Framework = "horovod"
    least: int
    most: int
    wish: int
    slots: int = 1
    gpus: int = 0
    workers: GpuWorkers
    launcher: LauncherSpec | None = None
    command: tuple[str, ...]
    max_restarts: int = 0
    in_gang: bool = False
    priority_class: str = ""
    scheduler: str
    run: RunPolicy = RunPolicy()
    elastic: ElasticPolicy | None = None
    isolated: bool = False
    status: JobStatus = JobStatus()
    deleting: bool = False
    leave: str = ""

    @property
    def leaves(self) -> tuple[str, ...]:
        """The nodes that its workers are to leave; empty once they have, or if nobody asked."""
        last = self.status.migration
        done = last is not None and last.done and last.request == self.leave
        if self.elastic is None or done:
            return ()
        named = self.leave.partition("@")[0].split(",")
        return tuple(sorted({name.strip() for name in named} - {""}))

    @property
    def finished(self) -> str:
        """The condition that ended it, Succeeded or Failed; empty while it goes on."""
        for one in self.status.conditions or ():
            if one.type in (SUCCEEDED, FAILED) and one.status == "True":
                return one.type
        return ""
