"""A pod of the trace as the object that a user would write."""

from collections.abc import Iterable

import msgspec

from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.objects.wire import PodWire
from alnair.kube.resources import Manifest
from alnair.model import names
from alnair.model.gpu_demand import LEAST_MEMORY_MIB
from alnair.model.gpu_models import MODELS
from alnair.traces.arrivals import Arrival
from alnair.traces.openb import WHOLE, TracePod

#: Marks the pods that a replay made; it deletes and counts no others.
LABEL = "app.kubernetes.io/managed-by"
MARK = "alnair-replay"
SELECTOR = f"{LABEL}={MARK}"
#: Nothing is pulled: kwok plays the kubelet.
_IMAGE = "pause"


def memory_of_share(pod: TracePod, models: Iterable[str]) -> int:
    """Return the MiB that a shared pod asks for: its share of the smallest GPU that it may run on.

    The trace has no GPU memory. A pod states one number whatever GPU it lands on; with the
    smallest GPU's, memory never runs out before compute does, on no model, so the replay is as
    hard as the trace and not harder.

    Args:
        pod: A pod that asks for a part of one GPU.
        models: GPU models of the trace's nodes.
    """
    there = set(models)
    allowed = (set(pod.models) & there or set(pod.models)) or there or set(MODELS)
    smallest = min(MODELS[model].memory_mib for model in allowed)
    return max(LEAST_MEMORY_MIB, pod.gpu_milli * smallest // WHOLE)


def compute_of_share(pod: TracePod) -> int:
    """Return the percent that a shared pod asks for, rounded up (openb has whole percents)."""
    return -(-pod.gpu_milli * 100 // WHOLE)


def manifest(
    arrival: Arrival, namespace: str, profile: str, models: Iterable[str], *, compute: bool = True
) -> Manifest:
    """Return the Pod object.

    Args:
        arrival: The pod and its name.
        namespace: Where.
        profile: Its schedulerName.
        models: GPU models of the trace's nodes.
        compute: A shared pod asks for its part of the GPU's time, not only of its memory.
    """
    pod = arrival.pod
    limits: dict[str, str] = {}
    if pod.gpus and pod.gpu_milli == WHOLE:
        limits[names.GPU] = str(pod.gpus)
    elif pod.gpus:
        limits[names.VGPU_MEMORY] = str(memory_of_share(pod, models))
        if compute:
            limits[names.VGPU_COMPUTE] = str(compute_of_share(pod))
    requests = dict(limits)
    if pod.cpu_milli:
        requests["cpu"] = f"{pod.cpu_milli}m"
    if pod.memory_mib:
        requests["memory"] = f"{pod.memory_mib}Mi"
    spec: Manifest = {
        "schedulerName": profile,
        "containers": [
            {
                "name": "main",
                "image": _IMAGE,
                "resources": {"requests": requests, "limits": limits},
            }
        ],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
    }
    if pod.models:
        spec["affinity"] = {"nodeAffinity": _affinity(pod.models)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": arrival.name, "namespace": namespace, "labels": {LABEL: MARK}},
        "spec": spec,
    }


def _affinity(models: tuple[str, ...]) -> Manifest:
    expression = {"key": names.GPU_MODEL_LABEL, "operator": "In", "values": list(models)}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [expression]}]
        }
    }


class Asking:
    """What pods ask for, whether they are read back or still to be created."""

    def __init__(self) -> None:
        self._project = PodProjector()

    def of(self, pod: PodWire) -> object:
        """Return what decides where the pod can go, without what the API server adds to it."""
        spec = self._project(pod).spec
        requests = [item for item in spec.requests if item[0] != names.VGPU]
        return requests, spec.affinity, spec.gpu

    def of_manifest(self, body: Manifest) -> object:
        """Return the same of a pod that is to be created."""
        return self.of(msgspec.convert(body, PodWire))
