"""The custom resources of training jobs: their definitions, and the rules between their fields.

Each rule's message names the field and what to write instead, as the API server shows it.
"""

from collections.abc import Iterator
from typing import Any, Final

from alnair.kube.crds.manifests import AGE, Column, CrdDefinition, Rule, Scale
from alnair.model import elastic_types, names

_WORKERS: Final = ".spec.workersSpec"
_LAUNCHER: Final = ".spec.launcherSpec"
#: Where the operator's own files lie in the pods.
_OURS: Final = "/etc/alnair"
_RESERVED: Final = ("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_HOSTNAME", "TORCHELASTIC_RUN_ID")

_COLUMNS: Final = (
    Column("Phase", ".status.phase"),
    Column("Target", ".status.targetReplicas", "integer"),
    Column("Ready", ".status.availableReplicas", "integer"),
)
_BOUNDS: Final = (
    Column("Min", f"{_WORKERS}.minReplicas", "integer"),
    Column("Max", f"{_WORKERS}.maxReplicas", "integer"),
)
_WIDE: Final = (
    Column("Launcher", ".status.launcher", priority=1),
    Column("Workers", ".status.workers", priority=1),
    AGE,
)


def _of_all() -> Iterator[Rule]:
    yield Rule(
        "size(self.metadata.name) <= 63 && !self.metadata.name.contains('.')",
        "metadata.name is part of names of hosts: write at most 63 characters without a dot",
    )
    yield Rule(
        "!has(self.spec.schedulerName) || "
        "self.spec.schedulerName.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        f"spec.schedulerName is no name of a scheduler: write one such as {names.SCHEDULER}",
        ".spec.schedulerName",
    )


def _of_pod(where: str) -> Iterator[Rule]:
    pod, said = f"self{where}", where.removeprefix(".")
    yield Rule(
        f"!{pod}.image.matches('[[:space:]]')",
        f"{said}.image has a blank in it: write registry/image:tag",
        f"{where}.image",
    )
    for kind in ("limits", "requests"):
        amounts = f"{pod}.resources.{kind}"
        absent = f"!has({pod}.resources) || !has({amounts}) || "
        field = f"{where}.resources.{kind}"
        ours = " || ".join(f"'{one}' in {amounts}" for one in names.GPU_RESOURCES)
        yield Rule(
            f"{absent}!({ours})",
            f"{said}.resources.{kind} asks for GPUs: write them as gpusPerWorker or gpuSlice of "
            "spec.workersSpec, and leave them out here",
            field,
        )
        yield Rule(
            f"{absent}{amounts}.all(key, isQuantity(string({amounts}[key])) && "
            f"quantity(string({amounts}[key])).compareTo(quantity('0')) >= 0)",
            f"{said}.resources.{kind} has what is no amount: write a number of 0 or more with an "
            "optional suffix, such as 500m or 4Gi",
            field,
        )
    yield Rule(
        f"!has({pod}.volumeMounts) || {pod}.volumeMounts.all(mount, "
        f"has({pod}.volumes) && {pod}.volumes.exists(volume, volume.name == mount.name))",
        f"{said}.volumeMounts names a volume that is not there: add it to {said}.volumes",
        f"{where}.volumeMounts",
    )
    yield Rule(
        f"!has({pod}.volumeMounts) || {pod}.volumeMounts.all(mount, mount.mountPath != '{_OURS}' "
        f"&& !mount.mountPath.startsWith('{_OURS}/'))",
        f"{said}.volumeMounts takes {_OURS}, where the operator's own files lie: choose another "
        "mountPath",
        f"{where}.volumeMounts",
    )
    reserved = ", ".join(f"'{one}'" for one in _RESERVED)
    yield Rule(
        f"!has({pod}.env) || {pod}.env.all(one, !(one.name in [{reserved}]))",
        f"{said}.env sets a variable that the launcher sets for each process: leave it out",
        f"{where}.env",
    )


def _of_command(where: str) -> Iterator[Rule]:
    words, said = f"self{where}.pythonCommand", where.removeprefix(".")
    yield Rule(
        f"size({words}[0]) > 0 && !{words}[0].contains(' ')",
        f"{said}.pythonCommand is one text: write a list with a word each, such as "
        "[python, train.py]",
        f"{where}.pythonCommand",
    )


def _of_workers() -> Iterator[Rule]:
    workers = f"self{_WORKERS}"
    yield from _of_pod(_WORKERS)
    yield Rule(
        f"!has({workers}.gpusPerWorker) || !has({workers}.gpuSlice)",
        "spec.workersSpec.gpuSlice and gpusPerWorker exclude one another: leave one of them out",
        f"{_WORKERS}.gpuSlice",
    )
    yield Rule(
        f"!has({workers}.gpuTypes) || "
        f"{workers}.gpuTypes.all(one, size(one) > 0 && !one.contains(','))",
        "spec.workersSpec.gpuTypes has what is no model: write one a line, such as "
        "NVIDIA-A100-SXM4-80GB",
        f"{_WORKERS}.gpuTypes",
    )
    yield Rule(
        f"!has({workers}.gpuTypes) || !has({workers}.gpusPerWorker) || {workers}.gpusPerWorker > 0",
        "spec.workersSpec.gpuTypes is of GPUs, and gpusPerWorker is 0: leave one of them out",
        f"{_WORKERS}.gpuTypes",
    )


def _of_elastic_workers() -> Iterator[Rule]:
    workers = f"self{_WORKERS}"
    yield from _of_workers()
    yield Rule(
        f"{workers}.minReplicas >= 1",
        "spec.workersSpec.minReplicas is 0: write 1 or more; spec.runPolicy.suspend stops a job",
        f"{_WORKERS}.minReplicas",
    )
    yield Rule(
        f"has({workers}.maxReplicas)",
        "spec.workersSpec.maxReplicas is missing: write the most workers that the job may have",
        _WORKERS,
    )
    yield Rule(
        f"!has({workers}.maxReplicas) || {workers}.minReplicas <= {workers}.maxReplicas",
        "spec.workersSpec.minReplicas is more than maxReplicas: lower it, or raise maxReplicas",
        f"{_WORKERS}.minReplicas",
    )
    yield Rule(
        f"!has({workers}.targetReplicas) || {workers}.targetReplicas >= {workers}.minReplicas",
        "spec.workersSpec.targetReplicas is less than minReplicas: raise it, or lower minReplicas; "
        "spec.runPolicy.suspend stops a job",
        f"{_WORKERS}.targetReplicas",
    )
    yield Rule(
        f"!has({workers}.targetReplicas) || !has({workers}.maxReplicas) || "
        f"{workers}.targetReplicas <= {workers}.maxReplicas",
        "spec.workersSpec.targetReplicas is more than maxReplicas: lower it, or raise maxReplicas",
        f"{_WORKERS}.targetReplicas",
    )


def _of_fixed_workers() -> Iterator[Rule]:
    replicas = f"{_WORKERS}.replicas"
    yield from _of_workers()
    yield Rule(
        f"self{replicas} >= 1",
        "spec.workersSpec.replicas is 0: write 1 or more; spec.runPolicy.suspend stops a job",
        replicas,
    )
    yield Rule(
        f"self{replicas} == oldSelf{replicas} || "
        "(has(self.spec.runPolicy) && self.spec.runPolicy.suspend)",
        "spec.workersSpec.replicas cannot change while a HorovodJob runs: set "
        "spec.runPolicy.suspend first, or use an ElasticHorovodJob",
        replicas,
    )


def _kind(
    kind: str,
    spec: Any,
    short: str,
    rules: tuple[Rule, ...],
    columns: tuple[Column, ...],
    scale: Scale | None,
    description: str,
) -> CrdDefinition:
    return CrdDefinition(
        group=names.JOBS_GROUP,
        version="v1alpha1",
        kind=kind,
        plural=f"{kind.lower()}s",
        spec=spec,
        status=elastic_types.JobStatus,
        short_names=(short,),
        columns=columns,
        rules=rules,
        scale=scale,
        description=description,
    )


_SCALE: Final = Scale(f"{_WORKERS}.targetReplicas", ".status.replicas", ".status.selector")
_LAUNCHED: Final = (*_of_pod(_LAUNCHER), *_of_command(_LAUNCHER))

ELASTIC_HOROVOD_JOB: Final = _kind(
    "ElasticHorovodJob",
    elastic_types.ElasticHorovodJobSpec,
    "ehj",
    (*_of_all(), *_LAUNCHED, *_of_elastic_workers()),
    (*_COLUMNS, *_BOUNDS, *_WIDE),
    _SCALE,
    "A Horovod training that grows and shrinks while it runs.",
)
HOROVOD_JOB: Final = _kind(
    "HorovodJob",
    elastic_types.HorovodJobSpec,
    "hj",
    (*_of_all(), *_LAUNCHED, *_of_fixed_workers()),
    (*_COLUMNS, *_WIDE),
    None,
    "A Horovod training of a fixed size.",
)
ELASTIC_TORCH_JOB: Final = _kind(
    "ElasticTorchJob",
    elastic_types.ElasticTorchJobSpec,
    "etj",
    (*_of_all(), *_of_command(_WORKERS), *_of_elastic_workers()),
    (*_COLUMNS, *_BOUNDS, *_WIDE),
    _SCALE,
    "A torchrun training that grows and shrinks, by its checkpoints.",
)
TRAINING_JOBS: Final = (ELASTIC_HOROVOD_JOB, HOROVOD_JOB, ELASTIC_TORCH_JOB)
