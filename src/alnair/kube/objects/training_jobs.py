"""From API objects: training jobs of our three kinds, with what their users left out filled in."""

from typing import Final

import msgspec

from alnair.kube.objects import wire
from alnair.kube.timestamps import timestamp
from alnair.model import elastic_types as types
from alnair.model import names
from alnair.model.training_job import TrainingJob


class JobMeta(wire.ObjectMeta, rename="camel"):
    """Metadata of an object whose spec has versions."""

    generation: int = 0


class ElasticHorovodJobWire(msgspec.Struct):
    """An ElasticHorovodJob."""

    metadata: JobMeta
    spec: types.ElasticHorovodJobSpec
    status: types.JobStatus | None = None


class HorovodJobWire(msgspec.Struct):
    """A HorovodJob."""

    metadata: JobMeta
    spec: types.HorovodJobSpec
    status: types.JobStatus | None = None


class ElasticTorchJobWire(msgspec.Struct):
    """An ElasticTorchJob."""

    metadata: JobMeta
    spec: types.ElasticTorchJobSpec
    status: types.JobStatus | None = None


JobWire = ElasticHorovodJobWire | HorovodJobWire | ElasticTorchJobWire

_KINDS: Final[dict[type, str]] = {
    ElasticHorovodJobWire: "ElasticHorovodJob",
    HorovodJobWire: "HorovodJob",
    ElasticTorchJobWire: "ElasticTorchJob",
}


def project_training_job(job: JobWire) -> TrainingJob:
    """Return the job as decisions see it; never raises for what the API server let in."""
    meta, spec = job.metadata, job.spec
    workers = spec.workers_spec
    if isinstance(spec, types.HorovodJobSpec):
        least = most = wish = max(1, spec.workers_spec.replicas)
        elastic = None
    else:
        bounds = spec.workers_spec
        least = max(1, bounds.min_replicas)
        most = max(least, bounds.max_replicas or 0)
        target = most if bounds.target_replicas is None else bounds.target_replicas
        wish = min(max(least, target), most)
        elastic = spec.elastic_policy or types.ElasticPolicy()
    launcher = None if isinstance(spec, types.ElasticTorchJobSpec) else spec.launcher_spec
    torch = workers if isinstance(workers, types.TorchWorkersSpec) else None
    gpus = workers.gpus_per_worker
    if gpus is None:
        gpus = 0 if workers.gpu_slice is not None else 1
    return TrainingJob(
        kind=_KINDS[type(job)],
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        version=meta.resource_version,
        generation=meta.generation,
        created=timestamp(meta.creation_timestamp),
        framework="horovod" if torch is None else "torch",
        least=least,
        most=most,
        wish=wish,
        slots=workers.slots or max(1, gpus),
        gpus=gpus,
        workers=workers,
        launcher=launcher,
        command=tuple((launcher or torch or _NO_COMMAND).python_command),
        max_restarts=torch.max_restarts if torch is not None else 0,
        in_gang=isinstance(launcher, types.ElasticLauncherSpec) and launcher.in_gang,
        priority_class=spec.priority_class_name or "",
        scheduler=spec.scheduler_name,
        run=spec.run_policy or types.RunPolicy(),
        elastic=elastic,
        isolated=spec.network is not None and spec.network.isolated,
        status=job.status or types.JobStatus(),
        deleting=meta.deletion_timestamp is not None,
        leave=(meta.annotations or {}).get(names.LEAVE_NODES, ""),
    )


_NO_COMMAND: Final = types.LauncherSpec(image="-", python_command=[])
