"""Training jobs for tests: manifests of all kinds, the original's among them, and invalid specs."""

import copy
from typing import Any, Final

Manifest = dict[str, Any]

GROUP: Final = "ai.centauruscloud.io/v1alpha1"
LAUNCHER: Final = {
    "image": "example/horovod:1",
    "pythonCommand": ["python", "/examples/train.py", "--epochs", "3"],
}

#: As in the original's elastic-training/config/samples and README, word for word in their fields.
ORIGINAL_ELASTIC: Final[Manifest] = {
    "apiVersion": GROUP,
    "kind": "ElasticHorovodJob",
    "metadata": {"name": "elastic-job", "labels": {"kind": "distributedjob"}},
    "spec": {
        "launcherSpec": {
            "image": "centaurusinfra/elastic-horovod",
            "pythonCommand": ["python", "/examples/elastic/pytorch/pytorch_mnist_elastic.py"],
        },
        "workersSpec": {
            "image": "centaurusinfra/elastic-horovod",
            "minReplicas": 2,
            "maxReplicas": 5,
        },
    },
}
ORIGINAL_FIXED: Final[Manifest] = {
    "apiVersion": GROUP,
    "kind": "HorovodJob",
    "metadata": {"name": "fixed-job"},
    "spec": {
        "launcherSpec": {
            "image": "centaurusinfra/horovod",
            "pythonCommand": ["python", "/examples/pytorch_mnist.py"],
        },
        "workersSpec": {"image": "centaurusinfra/horovod", "replicas": 2},
    },
}


def elastic(name: str = "job", least: int = 1, most: int = 4, **workers: Any) -> Manifest:
    """An ElasticHorovodJob."""
    bounds = {"minReplicas": least, "maxReplicas": most}
    return {
        "apiVersion": GROUP,
        "kind": "ElasticHorovodJob",
        "metadata": {"name": name},
        "spec": {
            "launcherSpec": copy.deepcopy(LAUNCHER),
            "workersSpec": {"image": "example/horovod:1", **bounds, **workers},
        },
    }


def fixed(name: str = "job", replicas: int = 2, **workers: Any) -> Manifest:
    """A HorovodJob."""
    return {
        "apiVersion": GROUP,
        "kind": "HorovodJob",
        "metadata": {"name": name},
        "spec": {
            "launcherSpec": copy.deepcopy(LAUNCHER),
            "workersSpec": {"image": "example/horovod:1", "replicas": replicas, **workers},
        },
    }


def torch(name: str = "job", least: int = 1, most: int = 4, **workers: Any) -> Manifest:
    """An ElasticTorchJob."""
    bounds = {"minReplicas": least, "maxReplicas": most}
    command = ["python", "train.py", "--name", "two words"]
    return {
        "apiVersion": GROUP,
        "kind": "ElasticTorchJob",
        "metadata": {"name": name},
        "spec": {
            "workersSpec": {
                "image": "example/torch:1",
                "pythonCommand": command,
                **bounds,
                **workers,
            }
        },
    }


def changed(manifest: Manifest, path: str, value: Any) -> Manifest:
    """The manifest with another value at a path of keys with dots; None takes it away."""
    made = copy.deepcopy(manifest)
    *inner, last = path.split(".")
    here = made
    for key in inner:
        here = here.setdefault(key, {})
    if value is None:
        here.pop(last, None)
    else:
        here[last] = value
    return made


_W: Final = "spec.workersSpec"
_L: Final = "spec.launcherSpec"
_GPU = {"limits": {"nvidia.com/gpu": 1}}
_SLICE = {"limits": {"alnair/vgpu-memory": 4096}}
_MOUNT = [{"name": "data", "mountPath": "/data"}]
_OURS = [{"name": "data", "mountPath": "/etc/alnair/ssh"}]
_DATA = [{"name": "data", "emptyDir": {}}]

#: What is wrong, the field that the API server blames, and words of its message that say what to
#: do, or for a plain bound what it is.
INVALID: Final[list[tuple[str, Manifest, str, str]]] = [
    ("no spec", changed(elastic(), "spec", None), "spec", "Required value"),
    ("no launcher", changed(elastic(), _L, None), _L, "Required value"),
    ("no workers", changed(elastic(), _W, None), _W, "Required value"),
    ("launcher has no image", changed(elastic(), f"{_L}.image", None), f"{_L}.image", "Required"),
    ("image is empty", elastic(image=""), f"{_W}.image", "at least 1 chars long"),
    ("image with a blank", elastic(image="my image"), f"{_W}.image", "write registry/image:tag"),
    (
        "no command",
        changed(elastic(), f"{_L}.pythonCommand", None),
        f"{_L}.pythonCommand",
        "Required value",
    ),
    (
        "command is empty",
        changed(elastic(), f"{_L}.pythonCommand", []),
        f"{_L}.pythonCommand",
        "at least 1 items",
    ),
    (
        "command is one text",
        changed(elastic(), f"{_L}.pythonCommand", ["python train.py"]),
        f"{_L}.pythonCommand",
        "write a list with a word each",
    ),
    (
        "command is no list",
        changed(torch(), f"{_W}.pythonCommand", "python train.py"),
        f"{_W}.pythonCommand",
        "must be of type array",
    ),
    ("minimum of 0", elastic(least=0), f"{_W}.minReplicas", "write 1 or more"),
    ("no maximum", changed(elastic(), f"{_W}.maxReplicas", None), _W, "maxReplicas is missing"),
    ("minimum above maximum", elastic(least=5, most=4), f"{_W}.minReplicas", "raise maxReplicas"),
    (
        "target above maximum",
        elastic(targetReplicas=9),
        f"{_W}.targetReplicas",
        "lower it, or raise maxReplicas",
    ),
    (
        "target below minimum",
        torch(least=2, targetReplicas=1),
        f"{_W}.targetReplicas",
        "raise it, or lower minReplicas",
    ),
    ("too many workers", elastic(most=100_000), f"{_W}.maxReplicas", "less than or equal to 1024"),
    ("workers in words", elastic(minReplicas="two"), f"{_W}.minReplicas", "must be of type int"),
    ("fewer GPUs than none", elastic(gpusPerWorker=-1), f"{_W}.gpusPerWorker", "to 0"),
    (
        "GPUs and a slice",
        elastic(gpusPerWorker=1, gpuSlice={"memoryMiB": 4096}),
        f"{_W}.gpuSlice",
        "leave one of them out",
    ),
    ("slice in GiB", elastic(gpuSlice={"memoryMiB": 8}), f"{_W}.gpuSlice.memoryMiB", "to 64"),
    (
        "slice without memory",
        elastic(gpuSlice={"computePercent": 50}),
        f"{_W}.gpuSlice.memoryMiB",
        "Required value",
    ),
    (
        "more than all of a GPU",
        elastic(gpuSlice={"memoryMiB": 4096, "computePercent": 150}),
        f"{_W}.gpuSlice.computePercent",
        "less than or equal to 100",
    ),
    ("no slots", elastic(slots=0), f"{_W}.slots", "to 1"),
    ("GPU types in a text", elastic(gpuTypes=["A100,H100"]), f"{_W}.gpuTypes", "one a line"),
    (
        "GPU types without GPUs",
        elastic(gpusPerWorker=0, gpuTypes=["A100"]),
        f"{_W}.gpuTypes",
        "leave one of them out",
    ),
    ("GPUs as resources", elastic(resources=_GPU), f"{_W}.resources.limits", "gpusPerWorker"),
    ("slices as resources", elastic(resources=_SLICE), f"{_W}.resources.limits", "gpuSlice"),
    (
        "no amount",
        elastic(resources={"requests": {"memory": "4 GB"}}),
        f"{_W}.resources.requests",
        "such as 500m or 4Gi",
    ),
    (
        "less than nothing",
        elastic(resources={"requests": {"cpu": "-1"}}),
        f"{_W}.resources.requests",
        "0 or more",
    ),
    ("variable without a name", elastic(env=[{"value": "1"}]), f"{_W}.env[0].name", "Required"),
    (
        "a variable twice",
        elastic(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
        f"{_W}.env[1]",
        "Duplicate value",
    ),
    (
        "a variable of the launcher",
        elastic(env=[{"name": "HOROVOD_RANK", "value": "0"}]),
        f"{_W}.env",
        "leave it out",
    ),
    (
        "a mount of nothing",
        elastic(volumeMounts=_MOUNT),
        f"{_W}.volumeMounts",
        "add it to spec.workersSpec.volumes",
    ),
    (
        "a mount in our place",
        elastic(volumes=_DATA, volumeMounts=_OURS),
        f"{_W}.volumeMounts",
        "choose another mountPath",
    ),
    (
        "a toleration of no kind",
        elastic(tolerations=[{"operator": "Always"}]),
        f"{_W}.tolerations[0].operator",
        'supported values: "Equal", "Exists"',
    ),
    (
        "a label that is a number",
        elastic(nodeSelector={"zone": 1}),
        f"{_W}.nodeSelector.zone",
        "must be of type string",
    ),
    (
        "a time limit of nothing",
        changed(elastic(), "spec.runPolicy.activeDeadlineSeconds", 0),
        "spec.runPolicy.activeDeadlineSeconds",
        "to 1",
    ),
    (
        "fewer restarts than none",
        changed(elastic(), "spec.runPolicy.backoffLimit", -1),
        "spec.runPolicy.backoffLimit",
        "to 0",
    ),
    (
        "deleted before it ends",
        changed(elastic(), "spec.runPolicy.ttlSecondsAfterFinished", -5),
        "spec.runPolicy.ttlSecondsAfterFinished",
        "to 0",
    ),
    (
        "a policy that nobody knows",
        changed(elastic(), "spec.runPolicy.cleanPodPolicy", "Never"),
        "spec.runPolicy.cleanPodPolicy",
        'supported values: "All", "None", "Running"',
    ),
    (
        "suspended in words",
        changed(elastic(), "spec.runPolicy.suspend", "yes"),
        "spec.runPolicy.suspend",
        "must be of type boolean",
    ),
    (
        "a grace of a day",
        changed(elastic(), "spec.elasticPolicy.scaleDownGraceSeconds", 86400),
        "spec.elasticPolicy.scaleDownGraceSeconds",
        "less than or equal to 3600",
    ),
    (
        "no name of a scheduler",
        changed(elastic(), "spec.schedulerName", "Alnair Scheduler"),
        "spec.schedulerName",
        "such as alnair-scheduler",
    ),
    ("a name with a dot", elastic("my.job"), "", "without a dot"),
    ("a name that is too long", elastic("a" * 64), "", "at most 63 characters"),
    ("no workers at all", fixed(replicas=0), f"{_W}.replicas", "write 1 or more"),
    ("no number of workers", changed(fixed(), f"{_W}.replicas", None), f"{_W}.replicas", "Req"),
    ("fewer beginnings than none", torch(maxRestarts=-1), f"{_W}.maxRestarts", "to 0"),
    ("a field that is misspelt", elastic(maxReplica=4), f"{_W}.maxReplica", "unknown field"),
]

#: What no API server can know when a job is made, and where the operator says it then.
REFUSED_LATER: Final = {
    "an image that cannot be pulled": "condition Running: ErrImagePull or ImagePullBackOff",
    "a Secret, ConfigMap or volume that is not there": "condition Running: the pod's own reason",
    "a PriorityClass or service account that is not there": "no pods: condition Scheduled NoPods",
    "GPUs of a type that no node has": "condition Scheduled: Unschedulable, the scheduler's words",
    "a quota of zero": "condition Scheduled: Unschedulable, the scheduler's words",
    "a command that ends at once": "condition Failed: BackoffLimitExceeded",
}
