"""Pods of a training job: what its user wrote, with what the operator adds to it."""

from typing import Any, Final

import msgspec

from alnair.elastic.child_names import ChildNames
from alnair.elastic.node_exclusion import away_from, noted
from alnair.model import names
from alnair.model.elastic_types import PodOverlay
from alnair.model.training_job import TrainingJob

Manifest = dict[str, Any]

#: Keys of the labels by which objects say of which job they are.
KINDS: Final = ("ElasticHorovodJob", "HorovodJob", "ElasticTorchJob")
#: Where the operator's own files lie in the pods.
KEYS_FOLDER: Final = "/etc/alnair/ssh"
HOSTS_FOLDER: Final = "/etc/alnair/hosts"
#: Read by their owner alone, as ssh wants it; and run by all.
_PRIVATE: Final = 0o400
_RUN: Final = 0o555
#: Processes of one worker speak to one another through it; a container has 64 MiB by itself.
_SHM: Final = "/dev/shm"
_SHM_VOLUME: Final = {"name": "alnair-shared-memory", "emptyDir": {"medium": "Memory"}}
_SHM_MOUNT: Final = {"name": "alnair-shared-memory", "mountPath": _SHM}


def labels(job: TrainingJob, role: str) -> dict[str, str]:
    """Return the labels of a job's pods by which they are found, as the original has them."""
    return {job.kind: job.name, "role": role}


def workers_metadata(job: TrainingJob, children: ChildNames) -> Manifest:
    """Return the metadata of what makes the workers."""
    return {"name": children.workers, "labels": labels(job, "worker"), **noted(job.leaves)}


def keys_volume(children: ChildNames) -> tuple[Manifest, Manifest]:
    """Return the volume with the job's keys, and where containers have it."""
    volume = {
        "name": "alnair-keys",
        "secret": {"secretName": children.keys, "defaultMode": _PRIVATE},
    }
    return volume, {"name": "alnair-keys", "mountPath": KEYS_FOLDER, "readOnly": True}


def hosts_volume(children: ChildNames) -> tuple[Manifest, Manifest]:
    """Return the volume with the host discovery, and where the launcher has it."""
    volume = {"name": "alnair-hosts", "configMap": {"name": children.hosts, "defaultMode": _RUN}}
    return volume, {"name": "alnair-hosts", "mountPath": HOSTS_FOLDER, "readOnly": True}


def pod_template(
    job: TrainingJob,
    children: ChildNames,
    role: str,
    overlay: PodOverlay,
    container: Manifest,
    volumes: tuple[tuple[Manifest, Manifest], ...] = (),
    *,
    in_group: bool,
    **pod: Any,
) -> Manifest:
    """Return the template of a pod.

    Args:
        job: Whose it is.
        children: Names of its objects.
        role: `worker` or `launcher`, which is what the container is called, too.
        overlay: What the user wrote.
        container: What the operator writes into the container; `limits` are added to the user's.
        volumes: Of the operator, and where the container has them.
        in_group: It is placed together with the group.
        pod: What the operator writes into the pod.
    """
    written = msgspec.to_builtins(overlay)
    # By such a label of the user's the pod would count as another job's.
    theirs = {key: said for key, said in written.get("labels", {}).items() if key not in KINDS}
    shown = {**theirs, **labels(job, role)}
    if in_group:
        shown[names.POD_GROUP_LABEL] = children.group
    metadata: Manifest = {"labels": shown}
    if annotations := _annotations(job, role, written):
        metadata["annotations"] = annotations
    spec: Manifest = {
        "schedulerName": job.scheduler,
        "automountServiceAccountToken": "serviceAccountName" in written,
        "enableServiceLinks": False,
        **pod,
        "containers": [_container(role, written, container, [mount for _, mount in volumes])],
        "volumes": [
            *([] if _has_own_shm(written) else [_SHM_VOLUME]),
            *(volume for volume, _ in volumes),
            *written.get("volumes", ()),
        ],
    }
    if job.priority_class:
        spec["priorityClassName"] = job.priority_class
    for field in (
        "imagePullSecrets",
        "tolerations",
        "nodeSelector",
        "affinity",
        "serviceAccountName",
        "securityContext",
    ):
        if field in written:
            spec[field] = written[field]
    if role == "worker" and job.leaves:
        spec["affinity"] = away_from(job.leaves, written.get("affinity"))
    return {"metadata": metadata, "spec": spec}


def gpu_limits(job: TrainingJob) -> dict[str, str]:
    """Return what a worker's container asks for of GPUs."""
    part = job.workers.gpu_slice
    if part is None:
        return {names.GPU: str(job.gpus)} if job.gpus else {}
    limits = {names.VGPU_MEMORY: str(part.memory_mib)}
    if part.compute_percent is not None:
        limits[names.VGPU_COMPUTE] = str(part.compute_percent)
    return limits


def _annotations(job: TrainingJob, role: str, written: Manifest) -> dict[str, str]:
    found: dict[str, str] = dict(written.get("annotations", {}))
    if role == "worker" and job.workers.gpu_types:
        found[names.GPU_MODELS] = ",".join(job.workers.gpu_types)
    return found


def _container(role: str, written: Manifest, ours: Manifest, mounts: list[Manifest]) -> Manifest:
    resources = {kind: dict(each) for kind, each in written.get("resources", {}).items()}
    if limits := ours.get("limits"):
        resources["limits"] = {**resources.get("limits", {}), **limits}
    made: Manifest = {"name": role, "image": written["image"]}
    if "imagePullPolicy" in written:
        made["imagePullPolicy"] = written["imagePullPolicy"]
    made |= {key: value for key, value in ours.items() if key not in ("limits", "env")}
    # The user's variables come last, and so go before ours of the same name.
    chosen = {one["name"] for one in written.get("env", ())}
    own = [one for one in ours.get("env", ()) if one["name"] not in chosen]
    if env := [*own, *written.get("env", ())]:
        made["env"] = env
    if "envFrom" in written:
        made["envFrom"] = written["envFrom"]
    if resources:
        made["resources"] = resources
    made["volumeMounts"] = [
        *([] if _has_own_shm(written) else [_SHM_MOUNT]),
        *mounts,
        *written.get("volumeMounts", ()),
    ]
    return made


def _has_own_shm(written: Manifest) -> bool:
    return any(one["mountPath"].rstrip("/") == _SHM for one in written.get("volumeMounts", ()))
