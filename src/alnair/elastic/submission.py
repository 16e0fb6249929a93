"""The manifests of a job that is submitted by a few words: a script or a command, and how much.

A script travels in a ConfigMap, which every pod of the job has as a folder.
"""

from typing import Any, Final, Literal

import msgspec

from alnair.model import names
from alnair.model.elastic_types import MOST_WORKERS

Manifest = dict[str, Any]
Kind = Literal["torch", "horovod"]

#: Where pods have the script.
FOLDER: Final = "/alnair-script"
#: Bytes of a script: a ConfigMap has 1 MiB at most, with its metadata.
MOST_BYTES: Final = 1_000_000
_VOLUME: Final = "alnair-script"
_KINDS: Final[dict[Kind, str]] = {"torch": "ElasticTorchJob", "horovod": "ElasticHorovodJob"}
_API: Final = f"{names.JOBS_GROUP}/v1alpha1"


class SubmissionError(Exception):
    """What is asked for is no job: the option that is wrong, and what to write instead."""

    def __init__(self, option: str, text: str) -> None:
        super().__init__(text)
        self.option = option


class Script(msgspec.Struct, frozen=True):
    """A Python program of the user's machine: the name of its file, and its text."""

    name: str
    text: str


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """What a user wants.

    Attributes:
        name: Of the job.
        kind: What runs it.
        image: Of all its pods.
        least, most: Workers.
        target: Most workers for now; None for `most`.
        gpus: Whole GPUs of a worker; None with a slice.
        gpu_memory_mib: Of one GPU, instead.
        gpu_percent: Of one GPU's time, with `gpu_memory_mib`; None for what others leave.
        gpu_types: Models that will do; any without.
        command: Of the training, a word each; with a script its arguments.
        script: None for a command in the image.
        env: Variables.
        resources: Amounts by name, of each worker.
        node_selector: Labels of nodes.
    """

    name: str
    kind: Kind = "torch"
    image: str
    least: int
    most: int
    target: int | None = None
    gpus: int | None = 1
    gpu_memory_mib: int | None = None
    gpu_percent: int | None = None
    gpu_types: tuple[str, ...] = ()
    slots: int | None = None
    command: tuple[str, ...] = ()
    script: Script | None = None
    env: tuple[tuple[str, str], ...] = ()
    resources: dict[str, str] = {}
    node_selector: dict[str, str] = {}
    priority_class: str | None = None
    scheduler: str | None = None
    service_account: str | None = None
    image_pull_policy: str | None = None
    backoff_limit: int | None = None
    deadline_s: int | None = None
    keep_s: int | None = None


def checked(wanted: Submission) -> None:
    """Refuse what contradicts itself; what only the API server knows is left to it.

    Raises:
        SubmissionError: Which option is wrong, and what to write instead.
    """
    if wanted.least < 1:
        raise SubmissionError(
            "--workers", f"{wanted.least} is no number of workers: write 1 or more"
        )
    if wanted.least > wanted.most:
        text = f"the least, {wanted.least}, is more than the most, {wanted.most}: swap them"
        raise SubmissionError("--workers", text)
    if wanted.most > MOST_WORKERS:
        text = f"{wanted.most} is too many: a job has {MOST_WORKERS} workers at most"
        raise SubmissionError("--workers", text)
    if wanted.gpu_percent is not None and wanted.gpu_memory_mib is None:
        text = "a part of a GPU's time needs a part of its memory, too: add --gpu-memory, as in 8Gi"
        raise SubmissionError("--gpu-share", text)
    if wanted.gpu_types and wanted.gpus == 0:
        raise SubmissionError("--gpu-type", "it is of GPUs, and --gpus is 0: leave one of them out")
    for resource in wanted.resources:
        if resource in names.GPU_RESOURCES:
            text = f"{resource} has options of its own: --gpus, or --gpu-memory and --gpu-share"
            raise SubmissionError("--resource", text)
    if wanted.script is None and not wanted.command:
        raise SubmissionError("SCRIPT", "nothing to run: give a script, or a command after --")
    if wanted.script is not None:
        size = len(wanted.script.text.encode())
        if size > MOST_BYTES:
            text = (
                f"{wanted.script.name} has {size:,} bytes, and a ConfigMap takes {MOST_BYTES:,}:"
                " put it into the image, or on a volume, and submit the command that runs it"
            )
            raise SubmissionError("SCRIPT", text)


def job_manifest(wanted: Submission) -> Manifest:
    """Return the job; its pods wait for the ConfigMap of the script, if it has one."""
    command = [*wanted.command]
    if wanted.script is not None:
        # Some images have no program `python`; its output is not held back.
        command = ["python3", "-u", f"{FOLDER}/{wanted.script.name}", *command]
    pod = _pod(wanted)
    workers: Manifest = {
        **pod,
        "minReplicas": wanted.least,
        "maxReplicas": wanted.most,
        **_given(targetReplicas=wanted.target, slots=wanted.slots),
        **_gpus(wanted),
    }
    if wanted.resources:
        workers["resources"] = {"requests": wanted.resources, "limits": wanted.resources}
    spec: Manifest = {"workersSpec": workers}
    if wanted.kind == "torch":
        workers["pythonCommand"] = command
    else:
        spec["launcherSpec"] = {**pod, "pythonCommand": command}
    spec |= _given(priorityClassName=wanted.priority_class, schedulerName=wanted.scheduler)
    run = _given(
        backoffLimit=wanted.backoff_limit,
        activeDeadlineSeconds=wanted.deadline_s,
        ttlSecondsAfterFinished=wanted.keep_s,
    )
    if run:
        spec["runPolicy"] = run
    return {
        "apiVersion": _API,
        "kind": _KINDS[wanted.kind],
        "metadata": {"name": wanted.name},
        "spec": spec,
    }


def script_manifest(wanted: Submission) -> Manifest | None:
    """Return the ConfigMap of the script; None for a command in the image."""
    if wanted.script is None:
        return None
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": script_name(wanted.name),
            "labels": {_KINDS[wanted.kind]: wanted.name},
        },
        "immutable": True,
        "data": {wanted.script.name: wanted.script.text},
    }


def script_name(job: str) -> str:
    """Return the name of the ConfigMap of a job's script."""
    return f"{job}-script"


def _pod(wanted: Submission) -> Manifest:
    made: Manifest = {
        "image": wanted.image,
        **_given(
            imagePullPolicy=wanted.image_pull_policy, serviceAccountName=wanted.service_account
        ),
    }
    if wanted.env:
        made["env"] = [{"name": name, "value": value} for name, value in wanted.env]
    if wanted.node_selector:
        made["nodeSelector"] = wanted.node_selector
    if wanted.script is not None:
        made["volumes"] = [
            {"name": _VOLUME, "configMap": {"name": script_name(wanted.name)}},
        ]
        made["volumeMounts"] = [{"name": _VOLUME, "mountPath": FOLDER, "readOnly": True}]
    return made


def _gpus(wanted: Submission) -> Manifest:
    made: Manifest
    if wanted.gpu_memory_mib is not None:
        part = _given(memoryMiB=wanted.gpu_memory_mib, computePercent=wanted.gpu_percent)
        made = {"gpuSlice": part}
    else:
        made = _given(gpusPerWorker=wanted.gpus)
    if wanted.gpu_types:
        made["gpuTypes"] = [*wanted.gpu_types]
    return made


def _given(**fields: Any) -> Manifest:
    return {name: value for name, value in fields.items() if value is not None}
